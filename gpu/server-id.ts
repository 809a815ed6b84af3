import { renameSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ulid } from '../core/ids.ts'
import type { Log } from '../core/log.ts'
import { optionalText } from '../core/optional-file.ts'

/**
 * The id of the data directory, by which clusters and machines know the engines of its server. Made with the first pool. A copy
 * of the directory gets an id of its own: two servers with one id would take or end each other's engines. A copy has another
 * inode, as a rule, and so has a restored backup; a directory that is moved within its file system keeps it.
 */
export function serverIdIn(dataDir: string, log: Log): string {
  const path = join(dataDir, 'server-id')
  /** The number of the inode of that file, in a file of its own, as people read the id. */
  const inodePath = `${path}.inode`
  const known = optionalText(path)?.trim()
  const inode = optionalText(inodePath)?.trim()
  const isCopy = Boolean(known) && inode !== undefined && inode !== inodeOf(path)
  if (isCopy)
    log.warn(
      'This data directory is a copy, so it gets a server id of its own. Engines in pools belong to the server of the original; if that is gone, they end after the orphan_grace of their pool',
      { directory: dataDir, before: known },
    )
  const id = known && !isCopy ? known : ulid().toLowerCase()
  if (id !== known) replace(path, id)
  if (inode === undefined || isCopy) replace(inodePath, inodeOf(path))
  return id
}

const inodeOf = (path: string): string => String(statSync(path, { bigint: true }).ino)

function replace(path: string, text: string): void {
  writeFileSync(`${path}.new`, `${text}\n`, { mode: 0o600 })
  renameSync(`${path}.new`, path)
}
