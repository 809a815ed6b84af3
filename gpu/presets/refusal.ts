import type { Failure, FailureCode } from '../../core/failure.ts'
import { promptRefusal } from '../../core/tasks/protocols/comfyui/history.ts'
import { engineErrorIn, failureOfEngine } from '../../core/tasks/protocols/engine-error.ts'

/** How one deviating error answer of an engine is to be understood. */
export interface Quirk {
  status: number
  pattern: RegExp
  code: FailureCode
}

/**
 * Converts an engine's answer that is not 2xx to a Failure: for a graph by what ComfyUI says of its nodes, else by the first matching quirk, else by its status and text.
 */
export function engineRefusal(status: number, body: string, quirks: readonly Quirk[] = []): Failure {
  const refused = promptRefusal(body)
  if (refused) return refused
  const error = engineErrorIn(body)
  const text = `${error.code ?? ''} ${error.type} ${error.message}`
  return failureOfEngine(status, error, quirks.find(one => one.status === status && one.pattern.test(text))?.code)
}
