import { createSecretKey, hkdfSync, type KeyObject, randomBytes } from 'node:crypto'
import { mkdir, open, readdir, readFile, rm, stat, utimes } from 'node:fs/promises'
import { basename, dirname, join, relative } from 'node:path'
import type { Log } from '../../core/log.ts'
import type { SavedConversation } from './retention.ts'
import { seal, unseal } from './sealed-file.ts'

/** The ending of a sealed copy. */
const ending = '.sealed'

export interface DiskCopiesOptions {
  dataDir: string
  /** The keys of organizations are derived from it and their salts. */
  key: KeyObject
  log: Log
}

/**
 * Encrypted copies of saved conversations in the data directory, so that they outlive the machine's main memory: what is in
 * memory has a copy, and nothing else has. Each organization has a key, derived from the master key and a salt: without the
 * salt nobody can read its copies. All methods run one after the other.
 */
export function openDiskCopies({ dataDir, key, log }: DiskCopiesOptions) {
  const root = join(dataDir, 'conversations')
  const copies = join(root, 'copies')
  const salts = join(root, 'salts')
  const keys = new Map<string, KeyObject>()
  const forgotten = new Set<string>()
  let closed = false
  let last: Promise<unknown> = Promise.resolve()

  function inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    const mine = last.then(work)
    last = mine.catch(() => {})
    return mine
  }

  /** Returns the key of an organization; makes its salt if it has none and `make` is set. */
  async function keyOf(owner: string, make: boolean): Promise<KeyObject | undefined> {
    const known = keys.get(owner)
    if (known) return known
    const path = join(salts, owner)
    let salt = await readFile(path).catch(() => undefined)
    if (salt?.length !== 32) {
      if (!make) return undefined
      salt = randomBytes(32)
      await mkdir(salts, { recursive: true, mode: 0o700 })
      await using file = await open(path, 'w', 0o600)
      await file.write(salt)
      await file.sync()
    }
    const own = createSecretKey(Buffer.from(hkdfSync('sha256', key, salt, 'infer/conversations/v1', 32)))
    keys.set(owner, own)
    return own
  }

  /** The copies by `model/owner/name`, with the time of last use. */
  async function list(): Promise<Map<string, { path: string; usedAt: number; bytes: number }>> {
    const found = new Map<string, { path: string; usedAt: number; bytes: number }>()
    const names = await readdir(copies, { recursive: true }).catch((): string[] => [])
    for (const name of names) {
      const path = join(copies, name)
      // A crash left it: no other is written meanwhile.
      if (name.endsWith('.part')) await rm(path, { force: true })
      if (!name.endsWith(ending)) continue
      const file = await stat(path).catch(() => undefined)
      if (file) found.set(name.slice(0, -ending.length), { path, usedAt: file.mtimeMs, bytes: file.size })
    }
    return found
  }

  return {
    /**
     * Writes what is in memory and has no copy, and deletes copies of what is not there any more. `folder` is that of
     * `saved`.
     */
    async sync(folder: string, saved: readonly SavedConversation[]): Promise<void> {
      await inTurn(async () => {
        const known = await list()
        const inMemory = new Set(saved.map(({ path }) => relative(folder, path)))
        for (const [name, { path }] of known) if (!inMemory.has(name)) await rm(path, { force: true })
      })
      // One turn each, so that the end of an organization need not wait for all of them.
      for (const { path: from, owner, usedAt } of saved)
        await inTurn(async () => {
          if (closed || forgotten.has(owner)) return
          const name = relative(folder, from)
          const to = join(copies, name + ending)
          const copy = await stat(to).catch(() => undefined)
          if (copy) return copy.mtimeMs < usedAt - 1 ? utimes(to, new Date(), new Date(usedAt)) : undefined
          await mkdir(dirname(to), { recursive: true, mode: 0o700 })
          await seal({ from, to, key: (await keyOf(owner, true))!, name })
        }).catch((thrown: unknown) => {
          // Engines delete what a longer conversation replaces.
          if ((thrown as NodeJS.ErrnoException).code !== 'ENOENT')
            log.warn('A saved conversation could not be copied to disk', {}, thrown)
        })
    },

    /** Puts the copies back into memory that are not there, the newest first, at most `maxBytes` in all. */
    restore: (folder: string, { maxBytes, maxAgeMs }: { maxBytes: number; maxAgeMs: number }): Promise<number> =>
      inTurn(async () => {
        let left = maxBytes
        let restored = 0
        const newest = [...(await list())].toSorted(([, a], [, b]) => b.usedAt - a.usedAt)
        for (const [name, { path, usedAt, bytes }] of newest) {
          const to = join(folder, name)
          const owner = basename(dirname(name))
          if (bytes > left || Date.now() - usedAt > maxAgeMs || forgotten.has(owner)) continue
          if (await stat(to).catch(() => undefined)) continue
          const own = await keyOf(owner, false)
          await mkdir(dirname(to), { recursive: true, mode: 0o700 })
          try {
            if (!own) throw new Error('Its organization has no key.')
            await unseal({ from: path, to, key: own, name })
            left -= bytes
            restored++
          } catch (thrown) {
            await rm(path, { force: true })
            log.warn('A copy of a conversation could not be read and was deleted', {}, thrown)
          }
        }
        return restored
      }),

    /** Deletes the key and the copies of an organization, and copies nothing of it any more. */
    forget(owner: string): Promise<void> {
      forgotten.add(owner)
      return inTurn(async () => {
        keys.delete(owner)
        await rm(join(salts, owner), { force: true })
        for (const model of await readdir(copies).catch((): string[] => []))
          await rm(join(copies, model, owner), { recursive: true, force: true })
      })
    },

    /** Deletes all copies and keys. */
    clear: (): Promise<void> =>
      inTurn(async () => {
        keys.clear()
        await rm(root, { recursive: true, force: true })
      }),

    /** Begins no further file. Resolves when none is being written. */
    async close(): Promise<void> {
      closed = true
      await last
    },
  }
}

export type DiskCopies = ReturnType<typeof openDiskCopies>
