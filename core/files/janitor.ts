import { lstat, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Log } from '../log.ts'
import type { FileRecord, Store } from '../store/store.ts'
import { filePathOf, idOfName } from './file-path.ts'

const everyMs = 60_000
const orphansEveryMs = 3_600_000
/** Bytes come before their row, so bytes without one may be of something that is just about to end. */
export const orphanAgeMs = 3_600_000
const batch = 200

interface JanitorOptions {
  folder: string
  store: Pick<Store, 'files'>
  log: Log
  /** Whether this process wrote the file lately: the wall clock may jump, this must not. */
  fresh: (id: string) => boolean
}

/**
 * Frees the disk of files that are removed or past their time, and of what a crash left. Every step may be broken off
 * and done again: the row says first that the file is gone, then the bytes go, then the row says that they went.
 */
export function openJanitor({ folder, store, log, fresh }: JanitorOptions) {
  let running: Promise<void> | undefined
  let again = false
  const closed = new AbortController()
  let orphansAt = -Infinity

  /** The bytes of files that are removed already. What cannot be unlinked is tried again another time. */
  async function erase(files: readonly FileRecord[]): Promise<number> {
    const erased: string[] = []
    for (const file of files)
      try {
        await rm(filePathOf(folder, file), { force: true })
        erased.push(file.id)
      } catch (cause) {
        log.error('A file that was removed could not be deleted', { file: file.id }, cause)
      }
    if (erased.length > 0) await store.files.erased(erased)
    return erased.length
  }

  async function expire(): Promise<void> {
    while (!closed.signal.aborted) {
      const over = await store.files.expire(Date.now(), batch)
      if (over.length === 0 || (await erase(over)) === 0 || over.length < batch) return
    }
  }

  /** Bytes that no row names, and those whose row says that they went but that came back with a power loss. */
  async function orphans(): Promise<void> {
    let swept = 0
    for (const organization of await readdir(folder, { withFileTypes: true })) {
      if (!organization.isDirectory() || !organization.name.startsWith('org_')) continue
      for (const name of await readdir(join(folder, organization.name))) {
        const id = idOfName(name)
        if (closed.signal.aborted) return
        if (!id.startsWith('file-') || fresh(id)) continue
        const path = join(folder, organization.name, name)
        const changed = await lstat(path).then(
          facts => facts.ctimeMs,
          () => Infinity,
        )
        if (changed > Date.now() - orphanAgeMs) continue
        const row = await store.files.find(id)
        if (row && row.removedAt === null) continue
        await rm(path, { force: true })
        swept++
      }
    }
    if (swept > 0) log.info('Files that nothing refers to were removed', { files: swept })
  }

  async function run(): Promise<void> {
    try {
      await expire()
      if (performance.now() - orphansAt < orphansEveryMs) return
      orphansAt = performance.now()
      await orphans()
    } catch (cause) {
      // What was not done is found again next time.
      if (!closed.signal.aborted) log.warn('Files that are past their time could not all be removed', {}, cause)
    }
  }

  /** Looks now; resolves when everything that was removed before the call has been freed. Never rejects. */
  async function look(): Promise<void> {
    if (running) {
      again = true
      return running
    }
    running = (async () => {
      do {
        again = false
        await run()
      } while (again && !closed.signal.aborted)
    })().finally(() => (running = undefined))
    return running
  }

  const timer = setInterval(() => void look(), everyMs).unref()
  void look()

  const close = async (): Promise<void> => {
    closed.abort()
    clearInterval(timer)
    await running
  }
  return { look, erase, close }
}
