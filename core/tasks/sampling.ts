import type { z } from 'zod'
import { invalid } from '../failure.ts'
import type { Feature } from '../models/model.ts'
import type { sampling } from '../schemas/sampling.ts'
import type { RequireFeature } from './catalog.ts'

/** Optional features of engines that choose tokens. */
export const samplingFeatures: readonly Feature[] = [
  'logprobs',
  'n',
  'logit_bias',
  'penalties',
  'top_k',
  'min_p',
  'repetition_penalty',
]

/** The fields that requests for text have in common. */
type SampledRequest = { [Name in keyof typeof sampling]?: z.output<(typeof sampling)[Name]> } & {
  n?: number | null | undefined
}

/** Checks the features that these fields use. */
export function checkSampling(request: SampledRequest, requireFeature: RequireFeature): void {
  requireFeature((request.n ?? 1) > 1, 'n')
  requireFeature(request.logit_bias && Object.keys(request.logit_bias).length, 'logit_bias')
  requireFeature(request.presence_penalty, 'penalties', 'presence_penalty')
  requireFeature(request.frequency_penalty, 'penalties', 'frequency_penalty')
  requireFeature(request.top_k != null, 'top_k')
  requireFeature(request.min_p, 'min_p')
  requireFeature(request.repetition_penalty != null && request.repetition_penalty !== 1, 'repetition_penalty')
}

/** Throws Failure `invalid_value` for options of a stream where none is requested. */
export function checkStreamOptions({ stream, stream_options }: SampledRequest): void {
  if (stream_options && stream !== true)
    throw invalid('stream_options', "'stream_options' is only allowed together with stream: true.")
}

/** Returns the fields of a request that are set, but for those in `left`, as the body for an engine. */
export function engineBody(model: string, request: object, left: ReadonlySet<string>): Record<string, unknown> {
  const body: Record<string, unknown> = { model }
  const fields = request as Record<string, unknown>
  for (const name of Object.keys(fields)) {
    const value = fields[name]
    if (value !== null && value !== undefined && !left.has(name)) body[name] = value
  }
  return body
}

type Inputs = Readonly<Record<string, unknown>>

/** Whether repeating the request gives the same result: its temperature is 0, or it has a seed and no temperature. */
export const isRepeatableSample = (inputs: Inputs): boolean =>
  !(typeof inputs.temperature === 'number' && inputs.temperature > 0) && isSeeded(inputs)

/** Whether the request has a seed or a temperature of 0. */
export const isSeeded = ({ seed, temperature }: Inputs): boolean => typeof seed === 'number' || temperature === 0

/** Whether a body for an engine wants several answers of one prompt: llama-server computes the others in slots of its choice. */
export const wantsSeveral = ({ n, n_cmpl: of }: Record<string, unknown>): boolean =>
  Number(n ?? 1) > 1 || Number(of ?? 1) > 1
