import { Failure } from '../../core/failure.ts'
import { conversationTask } from '../../core/schemas/task.ts'
import type { PreparedGeneration } from '../../core/tasks/generation/prepare.ts'
import type { GenerationInputs } from '../../core/tasks/protocols/generation-call.ts'
import type { Call } from '../http/request/call.ts'
import type { Owners } from '../http/request/owners.ts'
import type { JobTerms } from './submit.ts'

/** Why this server rewrites no prompts, and what to do. */
export const noRewriter =
  "No model rewrites prompts on this server. Set 'prompt_rewriting.model' in infer.yaml to the id of a chat model, and start the server again."

/**
 * Returns how to submit the jobs of a request: deferred until their prompt has been rewritten, if the request asks for that.
 * `group` is the id of its first job: the prompt is rewritten once for all. Throws Failure `unsupported_parameter` if no
 * model rewrites prompts, and as admission does if the caller may not use that model.
 */
export function deferForPrompt(
  call: Call,
  { expansionField: param }: Pick<PreparedGeneration, 'expansionField'>,
  { group, terms }: { group: string; terms: JobTerms | undefined },
  { admission, config }: Pick<Owners, 'admission' | 'config'>,
): { deferred: boolean; defer: (inputs: GenerationInputs) => GenerationInputs } {
  if (param === undefined) return { deferred: false, defer: inputs => inputs }
  const modelId = config.prompt_rewriting?.model
  if (modelId === undefined) throw new Failure('unsupported_parameter', `'${param}': ${noRewriter}`, { param })
  admission.admit(call.caller, { kind: 'call', task: conversationTask, modelId, param })
  const not_before = terms?.notBefore ?? 0
  return { deferred: true, defer: inputs => ({ ...inputs, prompt_expansion: { group, not_before } }) }
}
