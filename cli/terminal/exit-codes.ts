import { Failure, type FailureCode, type FailureMore } from '../../core/failure.ts'

/** Exit codes in the style of sysexits.h, so that a script can tell its own mistakes from failures of infer. */
export const exitCodes = {
  fine: 0,
  /** A request was refused, or a check failed. */
  failed: 1,
  /** The command line is wrong. */
  usage: 64,
  /** A file, a configuration or a database is invalid or damaged. */
  data: 65,
  internal: 70,
  /** A disk, a file or a socket of this machine failed. */
  io: 74,
  /** A job or execution continues, but the command stopped waiting for it. */
  unfinished: 75,
} as const

type ExitCode = (typeof exitCodes)[keyof typeof exitCodes]

/** A Failure of the command line itself, with its exit code. */
export class CommandFailure extends Failure {
  readonly exitCode: ExitCode

  constructor(exitCode: ExitCode, code: FailureCode, message: string, more: FailureMore = {}) {
    super(code, message, more)
    this.exitCode = exitCode
  }
}

/** Returns the failure for a wrong command line. */
export const usageFailure = (message: string): CommandFailure =>
  new CommandFailure(exitCodes.usage, 'invalid_value', message)

/** Returns the failure for a correct command that could not be carried out. */
export const refused = (code: FailureCode, message: string, more: FailureMore = {}): CommandFailure =>
  new CommandFailure(exitCodes.failed, code, message, more)

/** Cause of a Failure whose response this program could not read; the Failure has the message for the user. */
export class UnreadableAnswer extends Error {}

/** Returns the failure for an answer that is not in the form of this version. `from`: the address that answered. */
export const unreadableAnswer = (from: string, cause: unknown): CommandFailure =>
  refused(
    'worker_error',
    `This version of infer cannot read the response of ${from}. Is it an infer server of another version?`,
    { cause: new UnreadableAnswer(String(cause), { cause }) },
  )

/** The server in another process whose response this process got last; undefined before the first. */
let lastAnswered: string | undefined

/**
 * Notes that a server has answered. Responses are typed but not validated: a member that the server of another version
 * does not send fails where the command uses it, and `failureOfThrown` then explains that.
 */
export function noteAnswer(url: string): void {
  lastAnswered = url
}

/** Whether the code failed on a value that it did not expect, such as a date that is missing in a response. */
export const isUnexpectedValue = (thrown: unknown): thrown is Error =>
  thrown instanceof TypeError || thrown instanceof RangeError

/**
 * Converts any thrown value to a Failure with a message for the operator. System errors keep their message. After the
 * response of a server, an unexpected value is taken for one of another version.
 */
export function failureOfThrown(thrown: unknown): Failure {
  if (thrown instanceof Failure) return thrown
  const code = systemCode(thrown)
  if (code === undefined) {
    if (lastAnswered !== undefined && isUnexpectedValue(thrown)) return unreadableAnswer(lastAnswered, thrown)
    const messageText = thrown instanceof Error ? thrown.message : String(thrown)
    return new Failure(
      'internal_error',
      `Something went wrong inside infer: ${messageText}. This is a bug; please report it.`,
      { cause: thrown },
    )
  }
  const text = (thrown as Error).message.replace(/^\w+: /, '')
  const sentence = text.charAt(0).toUpperCase() + text.slice(1)
  return new CommandFailure(exitCodeOfSystem(code), 'internal_error', `${sentence} (${code}).`, { cause: thrown })
}

/**
 * Returns the exit code of a Failure: its own (`CommandFailure` and refusals of the store), else by the system error
 * that caused it, else by its code: an invalid local file is a data error.
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

/** Returns the errno or SQLite code of an error or one of its causes. */
function systemCode(thrown: unknown): string | undefined {
  for (let error = thrown, depth = 0; error instanceof Error && depth < 5; error = error.cause, depth++) {
    const { code, syscall } = error as NodeJS.ErrnoException
    if (typeof code === 'string' && (code.startsWith('SQLITE_') || syscall !== undefined)) return code
  }
  return undefined
}

/** Reasons why a file cannot be read, by system error code. */
const reasons: Record<string, string> = {
  ENOENT: 'there is no such file',
  ENOTDIR: 'there is no such file',
  EISDIR: 'it is a folder',
  EACCES: 'this user may not read it',
  EPERM: 'this user may not read it',
}

/** Returns the failure for a local file that cannot be read; the message begins with `what`. */
export function unreadable(what: string, cause: unknown): CommandFailure {
  const { code = '', message } = cause as NodeJS.ErrnoException
  return new CommandFailure(
    exitCodes.io,
    'invalid_value',
    `${what} cannot be read: ${reasons[code] ?? message.replace(/\.$/, '')}.`,
    { cause },
  )
}
