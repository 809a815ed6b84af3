import { CommandFailure, exitCodes } from './exit-codes.ts'

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
