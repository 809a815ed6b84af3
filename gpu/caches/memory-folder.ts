import { createHash } from 'node:crypto'
import { lstatSync, mkdirSync, readlinkSync, realpathSync, rmSync, statfsSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import type { CachesSettings } from '../../core/models/caches-settings.ts'

/** The kernel's number of the file system `tmpfs`. */
const tmpfs = 0x0102_1994

/** A folder in main memory, or the reason why there is none, as a sentence. */
export type MemoryFolder = { folder: string; reason: null } | { folder: null; reason: string }

/**
 * Makes the private folder in main memory that belongs to a data directory. It is reached by a link in the data directory,
 * because the sandbox of engines has another `/dev/shm`. What is in it stays until the machine starts again. Never throws.
 */
export function memoryFolderOf(dataDir: string, memory = '/dev/shm'): MemoryFolder {
  const none = (reason: string) => ({ folder: null, reason })
  try {
    if (statfsSync(memory).type !== tmpfs) return none(`${memory} is not in main memory.`)
    const real = realpathSync(dataDir)
    const uid = process.getuid?.() ?? -1
    const target = join(memory, `infer-${uid}-${createHash('sha256').update(real).digest('hex').slice(0, 16)}`)
    mkdirSync(target, { recursive: true, mode: 0o700 })
    const made = lstatSync(target)
    // Every user can create folders there.
    if (!made.isDirectory() || (uid >= 0 && made.uid !== uid) || (made.mode & 0o077) !== 0)
      return none(`${target} belongs to another user, or others can read it: delete it.`)
    const link = linkIn(real)
    mkdirSync(join(real, 'run'), { recursive: true, mode: 0o700 })
    if (linkTarget(link) !== target) {
      rmSync(link, { recursive: true, force: true })
      symlinkSync(target, link)
    }
    return { folder: link, reason: null }
  } catch (thrown) {
    return none(`${memory} cannot be used: ${(thrown as Error).message}.`)
  }
}

/** Whether a server with this data directory has made its folder, which may still have what was saved. */
export const hasMemoryFolder = (dataDir: string): boolean => linkTarget(linkIn(dataDir)) !== undefined

const linkIn = (dataDir: string): string => join(dataDir, 'run', 'conversations')

function linkTarget(path: string): string | undefined {
  try {
    return readlinkSync(path)
  } catch {
    return undefined
  }
}

/** The file system in which conversations are saved: its bytes, 0 if it is missing or not in main memory. */
export function memoryFileSystem(memory = '/dev/shm'): { path: string; bytes: number } {
  try {
    const { type, blocks, bsize } = statfsSync(memory)
    return { path: memory, bytes: type === tmpfs ? blocks * bsize : 0 }
  } catch {
    return { path: memory, bytes: 0 }
  }
}

/** Bytes of main memory that saved conversations may use. */
export const limitBytesOf = ({ memory }: Pick<CachesSettings, 'memory'>, machineBytes: number): number =>
  typeof memory === 'number' ? memory : Math.floor((Number.parseFloat(memory) / 100) * machineBytes)

/** Bytes that the file system of a folder has free. */
export function freeBytes(folder: string): number {
  const { bavail, bsize } = statfsSync(folder)
  return bavail * bsize
}
