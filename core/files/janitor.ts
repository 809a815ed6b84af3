import { lstat, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { openDueWork } from '../due-work.ts'
import type { Log } from '../log.ts'
import type { FileRecord, Store } from '../store/store.ts'
import { filePathOf, idOfName } from './file-path.ts'

const intervalMs = 60_000
const orphanIntervalMs = 3_600_000
/** Bytes are written before their row, so younger bytes without a row may belong to a job that is about to end. */
export const orphanAgeMs = 3_600_000
const batchSize = 200

interface JanitorOptions {
  folder: string
  store: Pick<Store, 'files'>
  log: Log
  /** Whether this process wrote the file recently, by the monotonic clock, because the wall clock may jump. */
  isRecent: (id: string) => boolean
}

/**
 * Deletes removed and expired files, and files that a crash left without a row. Every step can be interrupted and
 * repeated: the row is marked as removed, the bytes are deleted, the row is marked as erased.
 */
export function openJanitor({ folder, store, log, isRecent }: JanitorOptions) {
  const sweeps = openDueWork({ work: run })
  const closed = new AbortController()
  let orphansAt = -Infinity
  /** Files whose bytes could not be deleted: passed over for an hour, so that they hold up no others. */
  const undeletable = new Set<string>()

  /** Deletes the bytes of files whose rows are marked as removed. What cannot be deleted is tried again later. */
  async function erase(files: readonly FileRecord[]): Promise<void> {
    const erased: string[] = []
    for (const file of files)
      try {
        await rm(filePathOf(folder, file), { force: true })
        erased.push(file.id)
      } catch (cause) {
        undeletable.add(file.id)
        log.error('A file that was removed could not be deleted', { file: file.id }, cause)
      }
    if (erased.length > 0) await store.files.erased(erased)
  }

  async function expire(): Promise<void> {
    while (!closed.signal.aborted) {
      const limit = batchSize + undeletable.size
      const expired = await store.files.expire(Date.now(), limit)
      await erase(expired.filter(({ id }) => !undeletable.has(id)))
      if (expired.length < limit) return
    }
  }

  /** Returns the names in a folder; none of one that cannot be read, so that it holds up no others. */
  const namesIn = (path: string): Promise<string[]> =>
    readdir(path).catch((cause: unknown) => {
      log.warn('A folder of files could not be read', { folder: path }, cause)
      return []
    })

  /** Deletes bytes without a row, and erased bytes that reappeared after a power loss. */
  async function removeOrphans(): Promise<void> {
    let removed = 0
    for (const organization of await readdir(folder, { withFileTypes: true })) {
      if (!organization.isDirectory() || !organization.name.startsWith('org_')) continue
      for (const name of await namesIn(join(folder, organization.name))) {
        const id = idOfName(name)
        if (closed.signal.aborted) return
        if (!id.startsWith('file-') || isRecent(id)) continue
        const path = join(folder, organization.name, name)
        const changed = await lstat(path).then(
          facts => facts.ctimeMs,
          () => Infinity,
        )
        if (changed > Date.now() - orphanAgeMs) continue
        const row = await store.files.find(id)
        if (row && row.removedAt === null) continue
        try {
          await rm(path, { force: true })
          removed++
        } catch (cause) {
          log.warn('A file without a row in the database could not be deleted', { file: id }, cause)
        }
      }
    }
    if (removed > 0) log.info('Files without a row in the database were deleted', { files: removed })
  }

  async function run(): Promise<void> {
    try {
      const isHourly = performance.now() - orphansAt >= orphanIntervalMs
      if (isHourly) undeletable.clear()
      await expire()
      if (!isHourly) return
      orphansAt = performance.now()
      await removeOrphans()
    } catch (cause) {
      // The next sweep finds the remaining files.
      if (!closed.signal.aborted) log.warn('Not all expired files could be deleted', {}, cause)
    }
  }

  const timer = setInterval(() => void sweeps.check(), intervalMs).unref()
  void sweeps.check()

  return {
    /** Sweeps now; resolves when the bytes of all files that were removed before the call are deleted. Never rejects. */
    sweep: sweeps.check,
    erase,
    close(): Promise<void> {
      closed.abort()
      clearInterval(timer)
      return sweeps.close()
    },
  }
}
