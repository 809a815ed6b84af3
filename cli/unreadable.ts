import { CommandFailure, exitCodes } from './exit-codes.ts'

/** What the system says of a file, in words that say what to do. */
const reasons: Record<string, string> = {
  ENOENT: 'there is no such file',
  ENOTDIR: 'there is no such file',
  EISDIR: 'it is a folder',
  EACCES: 'this user may not read it',
  EPERM: 'this user may not read it',
}

/** A file of this machine that somebody named and that cannot be read, as one sentence that begins with `what`. */
export function unreadable(what: string, cause: unknown): CommandFailure {
  const { code = '', message } = cause as NodeJS.ErrnoException
  return new CommandFailure(
    exitCodes.io,
    'invalid_value',
    `${what} cannot be read: ${reasons[code] ?? message.replace(/\.$/, '')}.`,
    { cause },
  )
}
