import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Backups } from '../../inspection.ts'
import { pathsIn } from './directory.ts'

/** Returns the backups in the data directory, newest first: an upgrade of the database makes one. */
export function backupFiles(dataDir: string): Backups {
  const { backups: folder } = pathsIn(dataDir)
  const files = namesIn(folder)
    .filter(name => name.endsWith('.db'))
    .flatMap(name => {
      const path = join(folder, name)
      const stat = statSync(path, { throwIfNoEntry: false })
      return stat ? [{ path, bytes: stat.size, modifiedAt: Math.round(stat.mtimeMs) }] : []
    })
  return { folder, files: files.sort((a, b) => b.modifiedAt - a.modifiedAt) }
}

/** Returns an empty list if the folder does not exist. */
function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw cause
  }
}
