import { Failure, type FailureCode, failures } from '../../../core/failure.ts'

/** What both sides of a connection must have in common: the shape of the frames. */
export const agentProtocol = 1

/** Milliseconds between two signs of life of the server, and after which an agent without one ends. */
export const signOfLife = { everyMs: 5_000, limitMs: 15_000 }

/** The line with which an agent begins, with its version. A login shell may print anything before. */
export const greetingOf = (version: string): string => `\ninfer-agent ${agentProtocol} ${version}\n`

/** Returns the protocol and version in a greeting, and what comes after it; undefined while the text has none. Pure. */
export function greetingIn(bytes: Buffer): { protocol: number; version: string; rest: Buffer } | undefined {
  const text = bytes.toString('latin1')
  const found = /(?:^|\n)infer-agent (\d+) (\S+)\n/.exec(text)
  if (!found) return undefined
  return { protocol: Number(found[1]), version: found[2]!, rest: bytes.subarray(found.index + found[0].length) }
}

/** The calls that an agent answers: methods of its launcher. */
export type CallName = 'start' | 'list' | 'stop' | 'capacity' | 'logs' | 'leave' | 'close'

/** A failure as plain data, of a call that was refused or did not work. */
export interface SentFailure {
  code: FailureCode
  message: string
  engineText?: string | undefined
}

export function sentFailure(thrown: unknown): SentFailure {
  if (thrown instanceof Failure) return { code: thrown.code, message: thrown.message, engineText: thrown.engineText }
  return { code: 'internal_error', message: (thrown as Error).message }
}

/** The error of a failure that was sent. Only a Failure says that nothing was changed. */
export const receivedFailure = ({ code, message, engineText }: SentFailure): Error =>
  code in failures && code !== 'internal_error' ? new Failure(code, message, { engineText }) : new Error(message)
