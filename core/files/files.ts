import type { KeyObject } from 'node:crypto'
import { constants } from 'node:fs'
import { chmod, type FileHandle, mkdir, open, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Limits } from '../config.ts'
import { Failure } from '../failure.ts'
import { isId, newId } from '../ids.ts'
import type { Log } from '../log.ts'
import type { FilePurpose, FileRecord, LibraryItem, NewFile, Store } from '../store/store.ts'
import { longestLifetimeMs, openAddresses, type Upload } from './address.ts'
import { workFolder } from './engine-folders.ts'
import { filePathOf, safeContentType, safeFileName } from './file-path.ts'
import { openJanitor, orphanAgeMs } from './janitor.ts'
import { openParts, type Part } from './parts.ts'
import { openWorkspaces } from './workspaces.ts'
import { commitFile, type TooLarge, type Written, write } from './write.ts'

/** What its maker knows of a file; the rest is measured. */
export interface FileFacts {
  /** As a reader would save it; what does not fit into a file name is replaced. */
  name: string
  contentType: string
  purpose: FilePurpose
  width?: number | null
  height?: number | null
  durationMs?: number | null
  jobId?: string | null
  /** Epoch milliseconds; null: kept until it is removed. */
  expiresAt: number | null
}

interface FilesOptions {
  dataDir: string
  store: Pick<Store, 'files' | 'library' | 'stats'>
  linkKey: KeyObject
  limits: Pick<Limits, 'link_lifetime' | 'output_size'>
  log: Log
}

const tooLarge: TooLarge = most =>
  new Failure(
    'payload_too_large',
    `The file is larger than ${Math.floor(most / 1024)} KiB, the most that is taken here.`,
  )
const outgrown: TooLarge = most =>
  new Failure('worker_error', `The engine made a file of more than ${most} bytes, the most that a job may make.`)

/**
 * The files of all organizations: bytes at `<data dir>/files/<organization>/<file>.<ending>`, rows in the store, and the
 * addresses under which they are read. Bytes are on the disk before the row that names them, and a row says that they
 * are gone before they go.
 */
export async function openFiles({ dataDir, store, linkKey, limits, log }: FilesOptions) {
  const folder = join(dataDir, 'files')
  const incoming = join(folder, 'incoming')
  await mkdir(incoming, { recursive: true, mode: 0o700 })
  await chmod(folder, 0o700)
  for (const left of await readdir(incoming)) await rm(join(incoming, left), { recursive: true, force: true })
  const workspaces = await openWorkspaces(workFolder(dataDir), log)
  const addresses = openAddresses(linkKey)
  const parts = openParts({ folder: incoming, tooLarge })
  /** When this process wrote which file, on the monotonic clock: those whose row may still be to come. */
  const written = new Map<string, number>()
  const under = new Set<string>()

  const janitor = openJanitor({
    folder,
    store,
    log,
    fresh: id => (written.get(id) ?? -Infinity) > performance.now() - orphanAgeMs,
  })

  const row = (id: string, organizationId: string, facts: FileFacts, { bytes, sha256 }: Written): NewFile => ({
    id,
    organizationId,
    purpose: facts.purpose,
    name: safeFileName(facts.name, 'file'),
    contentType: safeContentType(facts.contentType),
    bytes,
    sha256,
    width: facts.width ?? null,
    height: facts.height ?? null,
    durationMs: facts.durationMs ?? null,
    jobId: facts.jobId ?? null,
    createdAt: Date.now(),
    expiresAt: facts.expiresAt,
  })

  /** What is on its way is refused early where the store would refuse its row. */
  function admit(): void {
    const { writable } = store.stats()
    if (writable !== true) throw new Failure('disk_full', writable)
  }

  async function put(id: string, organizationId: string, facts: FileFacts, whole: Written): Promise<NewFile> {
    const file = row(id, organizationId, facts, whole)
    const now = performance.now()
    for (const [one, at] of written) {
      if (at > now - orphanAgeMs) break
      written.delete(one)
    }
    written.set(id, now)
    await commitFile(whole, filePathOf(folder, file))
    return file
  }

  async function enter(file: NewFile): Promise<FileRecord> {
    try {
      return await store.files.add(file)
    } catch (thrown) {
      await rm(filePathOf(folder, file), { force: true })
      throw thrown
    }
  }

  async function receive(
    organizationId: string,
    source: AsyncIterable<Uint8Array>,
    facts: FileFacts & { maxBytes: number; id?: string },
  ): Promise<FileRecord> {
    admit()
    const id = facts.id ?? newId('file')
    const taken = () =>
      new Failure('conflict', `The file ${id} has been sent already; ask for another address to send another.`)
    // Two senders of one id would write under one name.
    if (under.has(id)) throw taken()
    under.add(id)
    try {
      if (facts.id !== undefined && (await store.files.find(id))) throw taken()
      return await enter(await put(id, organizationId, facts, await write(incoming, source, facts.maxBytes, tooLarge)))
    } finally {
      under.delete(id)
    }
  }

  async function find(organizationId: string, id: string): Promise<FileRecord | undefined> {
    const file = isId(id) ? await store.files.find(id) : undefined
    return file?.organizationId === organizationId && file.removedAt === null ? file : undefined
  }

  return {
    /** Stores bytes that are at hand. Rejects with Failure `disk_full`. */
    keep: (organizationId: string, bytes: Uint8Array, facts: FileFacts): Promise<FileRecord> =>
      receive(organizationId, one(bytes), { ...facts, maxBytes: bytes.byteLength }),
    /**
     * Stores what comes, at most `maxBytes`, under `id` where one was given away before. Rejects with Failure
     * `payload_too_large`, `disk_full`, `conflict` (the id is taken), or whatever the source failed with.
     */
    receive,
    /** Takes one part of a file that comes in parts, all of them `most` bytes at most; resolves with its SHA-256. */
    async part(id: string, number: number, source: AsyncIterable<Uint8Array>, most: number): Promise<string> {
      admit()
      return parts.take(id, number, source, most)
    },
    /** Stores the file of which these are the parts. Rejects as `receive` does, and with `invalid_value`. */
    async join(
      organizationId: string,
      wanted: readonly Part[],
      facts: FileFacts & { maxBytes: number; id: string },
    ): Promise<FileRecord> {
      const file = await receive(organizationId, parts.whole(facts.id, wanted), facts)
      await parts.forget(facts.id)
      return file
    },
    /**
     * Takes over what an engine made in a workspace. It is copied on its way, because a name can be changed under us
     * and an engine may still hold the file open. Its row comes with the job's end; until then `discard` undoes it.
     * Rejects with Failure `worker_error` (no regular file, a link, outside, too large), `disk_full`.
     */
    async adopt(organizationId: string, path: string, facts: FileFacts & { maxBytes?: number }): Promise<NewFile> {
      const most = facts.maxBytes ?? limits.output_size
      await using file = await workspaces.open(path, most)
      return await put(newId('file'), organizationId, facts, await write(incoming, chunksOf(file), most, outgrown))
    },
    /** Frees what was adopted for a job whose end was not taken. A file that has a row stays. Never rejects. */
    async discard(files: readonly NewFile[]): Promise<void> {
      for (const file of files)
        try {
          if (!(await store.files.find(file.id))) await rm(filePathOf(folder, file), { force: true })
        } catch (cause) {
          log.warn('A file that nobody wants could not be deleted; it is swept later', { file: file.id }, cause)
        }
    },
    /** Where its bytes lie; absolute when the data directory is. */
    pathOf: (file: Pick<NewFile, 'id' | 'organizationId' | 'contentType'>): string => filePathOf(folder, file),
    /** Its bytes, for reading; the caller closes it. Undefined: they are not there. */
    async open(file: FileRecord): Promise<FileHandle | undefined> {
      try {
        const handle = await open(filePathOf(folder, file), constants.O_RDONLY | constants.O_NOFOLLOW)
        const facts = await handle.stat()
        if (facts.isFile() && facts.size === file.bytes) return handle
        await handle.close()
      } catch (cause) {
        if ((cause as NodeJS.ErrnoException).code !== 'ENOENT') throw cause
      }
      return undefined
    },
    /**
     * The organization's file that is there; undefined for a foreign or removed one too. One whose time is over counts
     * as there until it is swept: a job that still waits may need it.
     */
    find,
    /** By its id alone, removed ones too: for a signed address, whose signature stands for the right to read. */
    ofAddress: (id: string): Promise<FileRecord | undefined> => store.files.find(id),
    /** Throws Failure `disk_full` while nothing can be stored. */
    admit,
    /** The videos of an organization. */
    library: {
      list: (...[organizationId, filter]: Parameters<Store['library']['list']>) =>
        store.library.list(organizationId, filter),
      find: (organizationId: string, id: string): Promise<LibraryItem | undefined> =>
        store.library.find(organizationId, id),
      /** Removes the entry and its files. Undefined: the organization has no such entry. */
      async remove(organizationId: string, id: string): Promise<LibraryItem | undefined> {
        const removed = await store.library.remove(organizationId, id, Date.now())
        if (removed) void janitor.look()
        return removed
      },
    },
    /** Removes it and frees its bytes. Idempotent; undefined: the organization has no such file. */
    async remove(organizationId: string, id: string): Promise<FileRecord | undefined> {
      if (!isId(id)) return undefined
      const removed = await store.files.remove(organizationId, id, Date.now())
      if (removed) await janitor.erase([removed])
      return removed
    },
    /** A folder for one run of a job; gone when it is disposed of, and when the server starts again. */
    workspace: workspaces.make,
    /** The same for a job that an engine with files of its own runs: the engine can reach it from its sandbox. */
    workspaceFor: workspaces.makeFor,
    /** The address under which anybody can read the file until it ends. */
    link: (file: { id: string; name: string }, origin: string, now?: number): string =>
      addresses.read(file, origin, limits.link_lifetime, now),
    /** Whether such an address was made here and has not ended. */
    verify: addresses.mayRead,
    /**
     * A new address to which the bytes of a file can be sent, once, within the hour, and the one under which they are
     * read then, which works for as long as an address may.
     */
    uploadLink(upload: Omit<Upload, 'id'>, origin: string) {
      const named = { ...upload, id: newId('file'), name: safeFileName(upload.name, 'file') }
      return {
        id: named.id,
        name: named.name,
        url: addresses.upload(named, origin, 3_600_000),
        readUrl: addresses.read(named, origin, longestLifetimeMs),
      }
    },
    /** What such an address says, where it was made here and has not ended. */
    verifyUpload: addresses.mayUpload,
    storageToken: addresses.storageToken,
    mayStore: addresses.mayStore,
    /** Frees the bytes of what was removed or ran out. Never rejects. */
    tidy: janitor.look,
    close(): Promise<void> {
      parts.close()
      return janitor.close()
    },
  }
}
export type Files = Awaited<ReturnType<typeof openFiles>>

/** Whether it was removed or has run out, swept already or not. */
export const isUnavailable = (file: FileRecord, now = Date.now()): boolean =>
  file.removedAt !== null || (file.expiresAt !== null && file.expiresAt <= now)

/** Its bytes from the beginning, in a buffer that is used again for every chunk. */
async function* chunksOf(file: FileHandle): AsyncGenerator<Uint8Array> {
  const buffer = Buffer.allocUnsafe(1 << 20)
  for (let position = 0; ; ) {
    const { bytesRead } = await file.read({ buffer, position })
    if (bytesRead === 0) return
    position += bytesRead
    yield buffer.subarray(0, bytesRead)
  }
}

async function* one(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}
