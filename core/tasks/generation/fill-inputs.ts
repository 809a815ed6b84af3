import { Failure, type FailureDetail } from '../../failure.ts'
import type { GenerationInputs } from '../protocols/generation-call.ts'
import type { FillContext, GenerationTaskRecord } from '../task.ts'
import { fillMedia, type TakenMedia } from './media.ts'

/** Checks a request and returns the inputs of its job: with defaults, and media as files. Rejects with Failure. */
export async function fillInputs(
  prepare: GenerationTaskRecord['prepare'],
  inputs: object,
  { model, drawSeed, take }: FillContext,
): Promise<GenerationInputs> {
  const prepared = prepare(inputs, model, drawSeed)
  const { expansionField: param } = prepared
  if (param !== undefined) throw new Failure('unsupported_parameter', nodeExpansion(param), { param })
  const taken: TakenMedia = {}
  for (const { kind, field, value, alpha } of prepared.media) taken[kind] = await take(field, value, kind, { alpha })
  return fillMedia(prepared, taken)
}

/** Returns the fields by which the inputs of a node ask for a rewritten prompt, which only jobs can have. */
export const expansionFaults = (inputs: Readonly<Record<string, unknown>>): FailureDetail[] =>
  ['enable_prompt_expansion', 'prompt_optimizer'].flatMap(path =>
    inputs[path] === true ? [{ code: 'unsupported_parameter', path, message: nodeExpansion(path) }] : [],
  )

const nodeExpansion = (field: string): string =>
  `'${field}' has no effect in a workflow. Put a node with a chat model before this one, and use its answer as the prompt.`
