import type { Failure, FailureCode } from '../../core/failure.ts'
import { engineErrorIn, failureOfEngine } from '../../core/tasks/protocols/engine-error.ts'

/** A rule for one engine's quirk: what it says, and what that means. */
export interface Quirk {
  status: number
  says: RegExp
  code: FailureCode
}

/** An engine's answer that is not 2xx as a failure of ours, by its quirks first and by its status and words otherwise. */
export function refusal(status: number, body: string, quirks: readonly Quirk[] = []): Failure {
  const words = engineErrorIn(body)
  const text = `${words.code ?? ''} ${words.type} ${words.message}`
  return failureOfEngine(status, words, quirks.find(one => one.status === status && one.says.test(text))?.code)
}
