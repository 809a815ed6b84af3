import { Failure, type FailureDetail } from '../../failure.ts'
import type { FileRecord } from '../../store/store.ts'
import type { GenerationInputs } from '../protocols/generation-call.ts'
import type { FillContext, GenerationTaskRecord } from '../task.ts'
import { byKind, fillMedia } from './media.ts'

/** Checks a request and returns the inputs of its job: with defaults, and media as files. Rejects with Failure. */
export async function fillInputs(
  prepare: GenerationTaskRecord['prepare'],
  inputs: object,
  { model, drawSeed, take }: FillContext,
): Promise<GenerationInputs> {
  const prepared = prepare(inputs, model, drawSeed)
  const { expansionField: param } = prepared
  if (param !== undefined) throw new Failure('unsupported_parameter', nodeExpansion(param), { param })
  const taken: FileRecord[] = []
  for (const { kind, field, value, alpha, webp } of prepared.media)
    taken.push(await take(field, value, kind, { alpha, webp }))
  return fillMedia(prepared, byKind(prepared.media, taken))
}

/** Returns the fields by which the inputs of a node ask for a rewritten prompt, which only jobs can have. */
export const expansionFaults = (inputs: Readonly<Record<string, unknown>>): FailureDetail[] =>
  ['enable_prompt_expansion', 'prompt_optimizer'].flatMap(path =>
    inputs[path] === true ? [{ code: 'unsupported_parameter', path, message: nodeExpansion(path) }] : [],
  )

const nodeExpansion = (field: string): string =>
  `'${field}' has no effect in a workflow. Put a node with a chat model before this one, and use its answer as the prompt.`
