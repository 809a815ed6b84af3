import { Failure, type FailureCode, type FailureMore } from '../core/failure.ts'

/** How the program ends, in the manner of sysexits.h, so that a script can tell its own mistake from ours. */
export const exitCodes = {
  fine: 0,
  /** A request was refused, or what was checked is not in order. */
  failed: 1,
  /** The command line is wrong. */
  usage: 64,
  /** A file, a configuration or a database is not what it should be. */
  data: 65,
  internal: 70,
  /** A disk, a file or a socket of this machine failed. */
  io: 74,
  /** What was begun goes on, and was not waited for any longer. */
  unfinished: 75,
} as const

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes]

/** A Failure of the command line itself, which says how the program ends. */
export class CommandFailure extends Failure {
  readonly exitCode: ExitCode

  constructor(exitCode: ExitCode, code: FailureCode, message: string, more: FailureMore = {}) {
    super(code, message, more)
    this.exitCode = exitCode
  }
}

/** A wrong command line, as one sentence. */
export const usage = (message: string): CommandFailure => new CommandFailure(exitCodes.usage, 'invalid_value', message)

/** What was asked for could not be done, though it was asked rightly. */
export const refused = (code: FailureCode, message: string, more: FailureMore = {}): CommandFailure =>
  new CommandFailure(exitCodes.failed, code, message, more)

/** Whatever was thrown, as a Failure whose sentence an operator can act on. Errors of the system keep their words. */
export function failureOf(thrown: unknown): Failure {
  if (thrown instanceof Failure) return thrown
  const code = systemCode(thrown)
  if (code === undefined) {
    const messageText = thrown instanceof Error ? thrown.message : String(thrown)
    return new Failure(
      'internal_error',
      `Something went wrong inside infer: ${messageText}. This is a mistake of ours; please report it.`,
      { cause: thrown },
    )
  }
  const words = (thrown as Error).message.replace(/^\w+: /, '')
  const sentence = words.charAt(0).toUpperCase() + words.slice(1)
  return new CommandFailure(exitCodeOfSystem(code), 'internal_error', `${sentence} (${code}).`, { cause: thrown })
}

/**
 * The exit code for a Failure: the one it carries (`CommandFailure`, and what the store refuses), else what its cause
 * says about a disk or a database, else by its code: what is wrong in a file of this machine is wrong data.
 */
export function exitCodeOf(failure: Failure): number {
  const { exitCode } = failure as { exitCode?: unknown }
  if (typeof exitCode === 'number') return exitCode
  const code = systemCode(failure.cause)
  if (code !== undefined) return exitCodeOfSystem(code)
  if (failure.code === 'internal_error') return exitCodes.internal
  if (failure.code === 'disk_full') return exitCodes.io
  return failure.status === 400 ? exitCodes.data : exitCodes.failed
}

function exitCodeOfSystem(code: string): ExitCode {
  return /^SQLITE_(CORRUPT|NOTADB)/.test(code) ? exitCodes.data : exitCodes.io
}

/** The errno or SQLite code of an error or of what caused it. */
function systemCode(thrown: unknown): string | undefined {
  for (let error = thrown, depth = 0; error instanceof Error && depth < 5; error = error.cause, depth++) {
    const { code, syscall } = error as NodeJS.ErrnoException
    if (typeof code === 'string' && (code.startsWith('SQLITE_') || syscall !== undefined)) return code
  }
  return undefined
}
