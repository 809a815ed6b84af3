import { dirname, isAbsolute } from 'node:path'
import { isInFolder } from './mount.ts'

/** Folders that no engine may see merely because its command refers to them. */
export interface Guarded {
  dataDir: string
  /** Real paths. */
  homes: readonly string[]
}

/** Folders with files of many programs or users. */
const sharedFolders = ['/', '/tmp', '/var', '/var/tmp', '/var/lib', '/etc', '/home', '/run']

/**
 * Whether an engine may see a path because its command refers to it. False for paths in the data directory, and for
 * parents of the data directory or of a home: they need an entry in `sandbox_read`. Pure.
 */
export const isSafeToShow = (path: string, { dataDir, homes }: Guarded): boolean =>
  isAbsolute(path) &&
  !sharedFolders.includes(path) &&
  !['/proc', '/sys', '/dev', dataDir].some(folder => isInFolder(path, folder)) &&
  ![dataDir, ...homes].some(hidden => isInFolder(hidden, path))

/** The same for the folder of such a file, which additionally must not be another user's home. Pure. */
export const isSafeFolder = (folder: string, guarded: Guarded): boolean =>
  isSafeToShow(folder, guarded) && dirname(folder) !== '/home' && folder !== '/root'
