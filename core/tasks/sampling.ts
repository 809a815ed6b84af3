import type { Feature } from '../models/model.ts'

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

type Inputs = Readonly<Record<string, unknown>>

/** Whether repeating the request gives the same result: its temperature is 0, or it has a seed and no temperature. */
export const isRepeatableSample = (inputs: Inputs): boolean =>
  !(typeof inputs.temperature === 'number' && inputs.temperature > 0) && isSeeded(inputs)

/** Whether the request has a seed or a temperature of 0. */
export const isSeeded = ({ seed, temperature }: Inputs): boolean => typeof seed === 'number' || temperature === 0
