import { createHash } from 'node:crypto'
import { lstatSync, mkdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/**
 * The kernel limits paths of sockets to 108 bytes with a final zero. Those here are up to 20 longer than the folder, and ssh
 * makes its own with 17 bytes more.
 */
const longestFolder = 107 - 20 - 17

/**
 * The folder of the sockets of a pool, the same for each server of the data directory, so that an address outlives a server.
 * Only this user may enter it. Throws where another user has made it.
 */
export function socketFolder(dataDir: string, pool: string): string {
  const inData = join(dataDir, 'run', 'pools', pool)
  const name = createHash('sha256').update(inData).digest('hex').slice(0, 12)
  const folder = Buffer.byteLength(inData) <= longestFolder ? inData : join(tmpdir(), `infer-pool-${name}`)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const found = lstatSync(folder)
  if (!found.isDirectory() || found.uid !== process.getuid?.() || (found.mode & 0o077) !== 0)
    throw new Error(`${folder} is not a folder that only this user may enter. Remove it.`)
  return folder
}
