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
  const taken: TakenMedia = {}
  for (const { kind, field, value, alpha } of prepared.media) taken[kind] = await take(field, value, kind, { alpha })
  return fillMedia(prepared, taken)
}
