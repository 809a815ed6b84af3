import { createSecretKey, hkdfSync, type KeyObject, randomBytes } from 'node:crypto'
import { mkdir, open, readdir, readFile, rm, stat, utimes } from 'node:fs/promises'
import { basename, dirname, join, relative } from 'node:path'
import type { Log } from '../../core/log.ts'
import { inFolder } from './held-folder.ts'
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
  const stop = new AbortController()
  /** How often all copies were deleted. */
  let cleared = 0
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
  async function list(): Promise<Map<string, Copy>> {
    const found = new Map<string, Copy>()
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

  /** Copies that are not in memory and are to be put there, by name; undefined before they were listed. */
  let waiting: Set<string> | undefined

  /** Puts one copy back into memory. */
  async function restore(folder: string, name: string, own: KeyObject | undefined): Promise<void> {
    const to = join(folder, name)
    await mkdir(dirname(to), { recursive: true, mode: 0o700 })
    if (!own) throw new Error('Its organization has no key.')
    const from = join(copies, name + ending)
    const wasThere = await inFolder(dirname(to), async pathOf => {
      await unseal({ from, to: pathOf(basename(to)), key: own, name, signal: stop.signal })
      return true
    })
    if (!wasThere) throw Object.assign(new Error('Its folder in memory is a link.'), { syscall: 'open' })
  }

  return {
    /**
     * Writes what is in memory and has no copy, and deletes copies of what is not there any more, except those that are to be
     * restored. `folder` is that of `saved`.
     */
    async sync(folder: string, saved: readonly SavedConversation[]): Promise<void> {
      const begun = cleared
      const isOver = () => stop.signal.aborted || begun !== cleared
      await inTurn(async () => {
        if (isOver()) return
        const known = await list()
        const inMemory = new Set(saved.map(({ path }) => relative(folder, path)))
        for (const [name, { path }] of known)
          if (!inMemory.has(name) && !waiting?.has(name)) await rm(path, { force: true })
      })
      // One turn each, so that the end of an organization need not wait for all of them.
      for (const { path: from, owner, usedAt } of saved)
        await inTurn(async () => {
          if (isOver() || forgotten.has(owner)) return
          const name = relative(folder, from)
          const to = join(copies, name + ending)
          const copy = await stat(to).catch(() => undefined)
          if (copy) return copy.mtimeMs < usedAt - 1 ? utimes(to, new Date(), new Date(usedAt)) : undefined
          await mkdir(dirname(to), { recursive: true, mode: 0o700 })
          const key = (await keyOf(owner, true))!
          await inFolder(dirname(from), pathOf => seal({ from: pathOf(basename(from)), to, key, name }))
        }).catch((thrown: unknown) => {
          // Engines delete what a longer conversation replaces.
          if ((thrown as NodeJS.ErrnoException).code !== 'ENOENT')
            log.warn('A saved conversation could not be copied to disk', {}, thrown)
        })
    },

    /**
     * Puts the copies back into memory that are not there, the newest first. In steps: other work comes between them, and
     * `close` ends them. A copy for which there is no space is kept and restored by a later call; one that is too old or too
     * much is not. Resolves with how many were restored.
     */
    async restore(folder: string, { within, maxAgeMs }: RestoreOptions): Promise<number> {
      const begun = cleared
      let restored = 0
      const known = await inTurn(async () => {
        const found = await list()
        waiting = new Set([...(waiting ?? found.keys())].filter(name => found.has(name)))
        return [...found].toSorted(([, a], [, b]) => b.usedAt - a.usedAt)
      })
      const one = async (name: string, { path, usedAt, bytes }: Copy): Promise<'done' | 'kept' | 'ended'> => {
        const owner = basename(dirname(name))
        if (stop.signal.aborted || begun !== cleared) return 'ended'
        const isThere = await stat(join(folder, name)).catch(() => undefined)
        if (isThere || Date.now() - usedAt > maxAgeMs || forgotten.has(owner)) return 'done'
        try {
          const own = await keyOf(owner, false)
          const how = await within(bytes, () => restore(folder, name, own))
          if (how === 'no space') return 'kept'
          if (how === 'done') restored++
          return 'done'
        } catch (thrown) {
          if (stop.signal.aborted) return 'ended'
          // The copy itself is good: there is no space, or its folder cannot be written.
          if ((thrown as NodeJS.ErrnoException).syscall !== undefined) {
            log.warn('A copy of a conversation could not be put into memory and is kept on disk', {}, thrown)
            return 'kept'
          }
          await rm(path, { force: true })
          log.warn('A copy of a conversation could not be read and was deleted', {}, thrown)
          return 'done'
        }
      }
      for (const [name, copy] of known) {
        if (!waiting?.has(name)) continue
        const how = await inTurn(() => one(name, copy))
        if (how !== 'done') break
        waiting?.delete(name)
      }
      return restored
    },

    /** How many copies wait for space in memory. */
    waiting: (): number => waiting?.size ?? 0,

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
    clear(): Promise<void> {
      // A copy that is being written is the last.
      cleared++
      waiting = undefined
      return inTurn(async () => {
        keys.clear()
        await rm(root, { recursive: true, force: true })
      })
    },

    /** Begins no further file, and leaves one that is being restored. Resolves when none is being written. */
    async close(): Promise<void> {
      stop.abort()
      await last
    },
  }
}

interface Copy {
  path: string
  usedAt: number
  bytes: number
}

export interface RestoreOptions {
  /** Does work that takes so many bytes of the memory, unless they are more than may be saved, or there is no space. */
  within: (bytes: number, work: () => Promise<void>) => Promise<'done' | 'too much' | 'no space'>
  maxAgeMs: number
}

export type DiskCopies = ReturnType<typeof openDiskCopies>
