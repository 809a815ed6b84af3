import { createHmac, type KeyObject } from 'node:crypto'
import { mkdirSync, readdirSync, rmSync } from 'node:fs'
import { lstat, readdir, rm, rmdir, stat, unlink } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { Log } from '../../core/log.ts'
import type { CachesSettings } from '../../core/models/caches-settings.ts'
import { needsNewEngine } from '../../core/models/change.ts'
import type { FleetSnapshot, SavedConversations } from '../../core/models/fleet.ts'
import { partsOf } from '../../core/models/gguf-parts.ts'
import type { Model } from '../../core/models/model.ts'
import { openDiskCopies } from './disk-copies.ts'
import { inFolder } from './held-folder.ts'
import { freeBytes, hasMemoryFolder, limitBytesOf, memoryFolderOf } from './memory-folder.ts'
import { type SavedConversation, toDelete } from './retention.ts'

/** How often conversations are looked for that are too old, milliseconds. */
const sweepMs = 60_000
/** A file that an engine began to write longer ago than this was left by one that was killed, milliseconds. */
const maxWriteMs = 120_000
/** Bytes of main memory that stay free. */
const spareBytes = 64 << 20

/** The folder of one engine beside those of the organizations, whose names are hexadecimal. */
export const exchangeOf = (folder: string, engineId: string): string => join(folder, engineId)
const isExchange = (name: string): boolean => name.startsWith('wkr_')

/** An engine that saves conversations into the folder of its model. */
export interface SavingEngine {
  /** The conversations that it would save, most recently used first. */
  pending(): Promise<{ owner: string; bytes: number }[]>
  /** `maxBytes`: by owner. */
  save(limits: { maxBytes: Record<string, number>; maxMs: number }): Promise<{ saved: number; bytes: number }>
}

export interface CachesOptions {
  dataDir: string
  /** Names models and organizations in paths, and encrypts copies on disk. */
  key: KeyObject
  settings: CachesSettings
  /** Main memory of the machine, in bytes. */
  machineBytes: number
  log: Log
  /** Engines that outlived an earlier server: their folders stay. */
  keptEngines?: ReadonlySet<string>
  /** The folder of a file system in main memory. */
  memory?: string
}

/**
 * Owns the conversations that engines have saved: files in main memory, one folder for each model with its settings, and in
 * it one for each organization. Engines write and read them; this decides how much they may write, and deletes. The files
 * outlive the server, so a start finds those of the run before.
 */
export function openCaches(options: CachesOptions) {
  const { dataDir, key, machineBytes, log } = options
  let { settings } = options
  let place: ReturnType<typeof memoryFolderOf> | undefined
  /** Bytes that engines may be writing now. */
  let reserved = 0
  let last: Promise<unknown> = Promise.resolve()
  /** The newest count, by folder of the model. */
  let counts = new Map<string, SavedConversations>()
  const deletedOwners = new Set<string>()
  /** Folders of organizations that were made. */
  const made = new Set<string>()
  /** Folders of models whose engines restore without an effect, until the settings change. */
  const useless = new Set<string>()
  let closed = false

  const named = (text: string, length: number) => createHmac('sha256', key).update(text).digest('hex').slice(0, length)
  const ownerName = (organizationId: string) => named(`organization ${organizationId}`, 32)
  const limitBytes = (): number => limitBytesOf(settings, machineBytes)
  const disk = openDiskCopies({ dataDir, key, log })
  /** The folder of all models; undefined if nothing is saved. */
  const root = (): string | undefined => (limitBytes() === 0 ? undefined : opened())
  function opened(): string | undefined {
    if (!place) {
      place = memoryFolderOf(dataDir, options.memory)
      if (place.reason) log.warn('Conversations are not saved when their model is unloaded', { reason: place.reason })
    }
    return place.folder ?? undefined
  }

  /** Runs work after the work before it: two decisions about the same bytes would exceed the limit. */
  function inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    const mine = last.then(work)
    last = mine.catch(() => {})
    return mine
  }

  /** Everything that is saved. Deletes what killed engines have left. */
  async function scan(): Promise<SavedConversation[]> {
    const folder = place?.folder
    if (!folder) return []
    const found: SavedConversation[] = []
    const counted = new Map<string, SavedConversations>()
    for (const model of await foldersIn(folder)) {
      const of = { conversations: 0, bytes: 0 }
      for (const owner of await foldersIn(join(folder, model)))
        await inFolder(join(folder, model, owner), async pathOf => {
          for (const name of await namesIn(pathOf('.'))) {
            const file = await lstat(pathOf(name)).catch(() => undefined)
            // What is lent to an engine is as old as the conversation.
            if (!file || file.isDirectory() || name.endsWith('.lent')) continue
            const isOld = Date.now() - file.mtimeMs > maxWriteMs
            if (file.isFile() && name.endsWith('.state')) {
              found.push({ path: join(folder, model, owner, name), owner, bytes: file.size, usedAt: file.mtimeMs })
              of.conversations++
              of.bytes += file.size
            } else if (isOld) await rm(pathOf(name), { force: true })
          }
        })
      counted.set(model, of)
    }
    counts = counted
    return found
  }

  /**
   * Deletes what is too old or too much. The wanted conversations count as the most recently used. Returns the bytes of them
   * for which there is room, by owner.
   */
  async function makeRoom(wanted: readonly { owner: string; bytes: number }[] = []): Promise<Map<string, number>> {
    const folder = place?.folder
    if (!folder) return new Map()
    const now = Date.now()
    const saved = await scan()
    const added = wanted.map(({ owner, bytes }, at) => ({ path: null, owner, bytes, usedAt: now - at }))
    const free = freeBytes(folder) - spareBytes + total(saved)
    const maxBytes = Math.max(0, Math.min(limitBytes(), free) - reserved)
    const deleted = new Set(toDelete([...saved, ...added], { now, maxAgeMs: settings.age, maxBytes }))
    for (const { path } of deleted) if (path !== null) await removeFile(path)
    const room = new Map<string, number>()
    for (const one of added) if (!deleted.has(one)) room.set(one.owner, (room.get(one.owner) ?? 0) + one.bytes)
    if (saved.some(one => deleted.has(one))) await scan()
    return room
  }

  async function sweep(): Promise<void> {
    await inTurn(() => makeRoom()).catch((thrown: unknown) =>
      log.warn('The saved conversations could not be read', {}, thrown),
    )
    if (disk.waiting() > 0) await restoreFromDisk()
    copyToDisk()
  }

  let copying: 'no' | 'yes' | 'again' = 'no'
  /** Makes the copies on disk equal to what is in memory, in the background. */
  function copyToDisk(): void {
    const folder = place?.folder
    if (!settings.disk || !folder) return
    copying = copying === 'no' ? 'yes' : 'again'
    if (copying === 'again') return
    void inTurn(scan)
      .then(saved => disk.sync(folder, saved))
      .catch((thrown: unknown) => log.warn('Saved conversations could not be copied to disk', {}, thrown))
      .finally(() => {
        const again = copying === 'again'
        copying = 'no'
        if (again) copyToDisk()
      })
  }

  /** After a restart of the machine: puts the copies on disk back into memory. Never rejects. */
  async function restoreFromDisk(): Promise<void> {
    try {
      const folder = settings.disk ? root() : undefined
      if (folder === undefined) return await disk.clear()
      const within = async (bytes: number, work: () => Promise<void>) => {
        const refusal = await inTurn(async () => {
          if (bytes > limitBytes() - reserved - total(await scan())) return 'too much'
          if (bytes > freeBytes(folder) - spareBytes - reserved) return 'no space'
          reserved += bytes
          return undefined
        })
        if (refusal) return refusal
        try {
          await work()
          return 'done'
        } finally {
          reserved -= bytes
        }
      }
      const keptBefore = disk.waiting()
      const restored = await disk.restore(folder, { within, maxAgeMs: settings.age })
      if (restored > 0) log.info('Saved conversations were read from disk', { conversations: restored })
      const conversations = disk.waiting()
      if (conversations > 0 && conversations !== keptBefore && !closed)
        log.warn('The main memory has no space for all conversations on disk; they are kept there', { conversations })
    } catch (thrown) {
      log.warn('Saved conversations could not be read from disk', {}, thrown)
    }
  }

  /** Names of models with their settings and files as they were when their last engine started. */
  const modelNames = new WeakMap<Model, string>()
  async function nameModel(model: Model): Promise<string> {
    const fields = Object.entries(model).filter(([field]) => needsNewEngine(field))
    const files = await Array.fromAsync(partsOf(model.source ?? ''), async path => {
      const file = await stat(path).catch(() => undefined)
      return [path, file?.size, file?.mtimeMs]
    })
    const name = named(JSON.stringify([fields.toSorted(([a], [b]) => (a < b ? -1 : 1)), files]), 32)
    modelNames.set(model, name)
    return name
  }

  const caches = {
    /** Makes the folder of a model for an engine that starts now; undefined if its conversations are not saved. */
    async folderFor(model: Model): Promise<string | undefined> {
      const all = root()
      if (all === undefined) return undefined
      const folder = join(all, await nameModel(model))
      return !useless.has(folder) && isMade(folder) ? folder : undefined
    },

    /** A key for hashes of prompts in names of files, so that they say nothing to others. */
    markKey: named('prompt marks', 64),

    /** From now on nothing is saved of the model with this folder: its engine restores without an effect. */
    savesNothingIn(folder: string): void {
      useless.add(folder)
    },

    /**
     * Returns the name by which an engine with this folder knows an organization, and makes its folder there; undefined if
     * nothing is saved of it, as of a deleted organization.
     */
    ownerIn(folder: string, organizationId: string): string | undefined {
      const owner = ownerName(organizationId)
      if (deletedOwners.has(owner)) return undefined
      const path = join(folder, owner)
      if (!made.has(path) && isMade(path)) made.add(path)
      return made.has(path) ? owner : undefined
    },

    /** Has an engine save what it has not saved yet, within the limits and `maxMs`. Never rejects. */
    async save(engine: SavingEngine, maxMs: number): Promise<void> {
      if (!root()) return
      try {
        const wanted = await engine.pending()
        if (wanted.length === 0) return
        let bytes = 0
        const room = await inTurn(async () => {
          const found = await makeRoom(wanted)
          bytes = [...found.values()].reduce((sum, of) => sum + of, 0)
          reserved += bytes
          return found
        })
        try {
          const done = await engine.save({ maxBytes: Object.fromEntries(room), maxMs })
          if (done.saved > 0) log.info('Conversations were saved', { conversations: done.saved, bytes: done.bytes })
        } finally {
          await inTurn(async () => {
            reserved -= bytes
            await scan()
          })
          copyToDisk()
        }
      } catch (thrown) {
        log.warn('The conversations of an engine could not be saved', {}, thrown)
      }
    },

    /** Deletes everything of an organization, and saves nothing of it any more. */
    async forget(organizationId: string): Promise<void> {
      const owner = ownerName(organizationId)
      deletedOwners.add(owner)
      await disk.forget(owner)
      const folder = place?.folder
      if (!folder) return
      await inTurn(async () => {
        for (const model of await namesIn(folder)) await removeFolder(join(folder, model, owner))
        await scan()
      })
    },

    /** What is saved of a model with its current settings; null if nothing may be saved here. */
    of(model: Model): SavedConversations | null {
      if (limitBytes() === 0 || place?.folder === null) return null
      const name = modelNames.get(model)
      // Nobody waits for its files, which may be on a mount that does not answer: the next call knows the name.
      if (name === undefined) {
        modelNames.set(model, '')
        void nameModel(model)
      }
      return counts.get(name ?? '') ?? { conversations: 0, bytes: 0 }
    },

    /** How much may be saved of all models and for how long; `fault`: why nothing can be. */
    limits: () => ({
      limitBytes: limitBytes(),
      ageMs: settings.age,
      disk: settings.disk,
      fault: place?.reason ?? null,
    }),

    /** What is saved in all, and how much may be. */
    total(): Omit<FleetSnapshot['saved'], 'models'> {
      const all = { conversations: 0, bytes: 0, limitBytes: limitBytes(), fault: place?.reason ?? null }
      for (const { conversations, bytes } of counts.values()) {
        all.conversations += conversations
        all.bytes += bytes
      }
      return all
    },

    /** Applies changed settings: what is beyond them is deleted. */
    configure(next: CachesSettings): void {
      settings = next
      useless.clear()
      if (!next.disk) void disk.clear()
      void sweep()
    },

    /** Ends the sweeps and deletes empty folders. What is saved stays for the next start. */
    async close(): Promise<void> {
      closed = true
      clearInterval(sweeping)
      await disk.close()
      await last
      if (place?.folder) await removeEmpty(place.folder)
    },
  }
  // Also to delete what is there if nothing may be saved any more.
  if (hasMemoryFolder(dataDir)) opened()
  if (place?.folder) removeExchanges(place.folder, options.keptEngines)
  void restoreFromDisk().then(sweep)
  const sweeping = setInterval(() => void sweep(), sweepMs).unref()
  return caches
}

export type Caches = ReturnType<typeof openCaches>

const total = (saved: readonly SavedConversation[]): number => saved.reduce((sum, { bytes }) => sum + bytes, 0)

/** Makes a folder. False if that is not possible, as when the memory is full: its conversations are then not saved. */
export function isMade(folder: string): boolean {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    return true
  } catch {
    return false
  }
}

/** Folders, and no links: engines write here, and must not lead the server to files elsewhere. */
const foldersIn = async (folder: string): Promise<string[]> =>
  (await readdir(folder, { withFileTypes: true }).catch(() => []))
    .filter(entry => entry.isDirectory())
    .map(({ name }) => name)
const namesIn = (folder: string): Promise<string[]> => readdir(folder).catch((): string[] => [])

/** Deletes the folders of engines that have ended with the server: what they were writing belongs to nobody. */
function removeExchanges(folder: string, kept: ReadonlySet<string> = new Set()): void {
  try {
    for (const model of readdirSync(folder))
      for (const name of readdirSync(join(folder, model)))
        if (isExchange(name) && !kept.has(name)) rmSync(join(folder, model, name), { recursive: true, force: true })
  } catch {
    // The sweeps delete its files later.
  }
}

const removeFile = (path: string): Promise<unknown> =>
  inFolder(dirname(path), pathOf => rm(pathOf(basename(path)), { force: true }))

/** Deletes a folder of files. An engine may write into it meanwhile, so that it is not empty at once. */
async function removeFolder(folder: string): Promise<void> {
  for (let attempt = 0; attempt < 5; attempt++) {
    await inFolder(folder, async pathOf => {
      for (const name of await namesIn(pathOf('.'))) await unlink(pathOf(name)).catch(() => {})
    })
    const code = await rmdir(folder).then(
      () => 'ENOENT',
      (thrown: NodeJS.ErrnoException) => thrown.code,
    )
    if (code === 'ENOENT') return
    if (code === 'ENOTDIR') return rm(folder, { force: true })
  }
}

async function removeEmpty(folder: string): Promise<void> {
  for (const entry of await readdir(folder, { withFileTypes: true }).catch(() => []))
    if (entry.isDirectory()) await removeEmpty(join(folder, entry.name))
  await rmdir(folder).catch(() => {})
}
