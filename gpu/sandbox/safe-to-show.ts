import { dirname, isAbsolute } from 'node:path'
import { isWithin } from './mount.ts'

/** What no engine is shown only because a command or a program leads there. */
export interface Guarded {
  dataDir: string
  /** Real paths. */
  homes: readonly string[]
}

/** These hold files of many programs or users. */
const sharedFolders = ['/', '/tmp', '/var', '/var/tmp', '/var/lib', '/etc', '/home', '/run']

/**
 * Whether an engine may see a path that its command names. Not so for paths in the data directory, above it or above a
 * home: those are given to an engine only by name (`sandbox_read`). Pure.
 */
export const isSafeToShow = (path: string, { dataDir, homes }: Guarded): boolean =>
  isAbsolute(path) &&
  !sharedFolders.includes(path) &&
  !['/proc', '/sys', '/dev', dataDir].some(folder => isWithin(path, folder)) &&
  ![dataDir, ...homes].some(hidden => isWithin(hidden, path))

/** The same for a folder in which a named file lies: never the home of another user either. Pure. */
export const isSafeFolder = (folder: string, guarded: Guarded): boolean =>
  isSafeToShow(folder, guarded) && dirname(folder) !== '/home' && folder !== '/root'
