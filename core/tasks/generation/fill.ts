import type { GenerationInputs } from '../protocols/generation-call.ts'
import type { FillContext, GenerationTaskRecord } from '../task.ts'
import { type Taken, withMedia } from './media.ts'

/** Checks a request and returns the inputs that its job is stored with: defaults filled in, media as files. Rejects with Failure. */
export async function withFiles(
  prepare: GenerationTaskRecord['prepare'],
  inputs: object,
  { model, drawSeed, take }: FillContext,
): Promise<GenerationInputs> {
  const prepared = prepare(inputs, model, drawSeed)
  const taken: Taken = {}
  for (const { kind, field, value, alpha } of prepared.media) taken[kind] = await take(field, value, kind, { alpha })
  return withMedia(prepared, taken)
}
