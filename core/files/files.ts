import type { KeyObject } from 'node:crypto'
import { constants } from 'node:fs'
import { chmod, type FileHandle, mkdir, open, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Limits } from '../config.ts'
import { Failure } from '../failure.ts'
import { isId, newId } from '../ids.ts'
import type { Log } from '../log.ts'
import { pick } from '../members.ts'
import {
  dayStartOf,
  type FileRecord,
  type LibraryItem,
  type NewFile,
  type StorageLimits,
  type Store,
} from '../store/store.ts'
import { longestLifetimeMs, openFileUrls, type Upload } from './address.ts'
import { openApiFiles } from './api-files.ts'
import { type FileFacts, filePathOf, newFileOf, safeFileName } from './file-path.ts'
import { openJanitor, orphanAgeMs } from './janitor.ts'
import { openParts, type UploadPart } from './parts.ts'
import { openUploads } from './uploads.ts'
import { openWorkspaces, workFolder } from './workspaces.ts'
import { chunksOf, commitFile, type SizeFailure, syncFile, type Written, write } from './write.ts'

interface FilesOptions {
  dataDir: string
  store: Pick<Store, 'files' | 'library' | 'stats'>
  linkKey: KeyObject
  limits: Pick<Limits, 'link_lifetime' | 'output_size'>
  /** The limits of an organization on what it stores; 0 is unlimited, undefined means that there is no organization. */
  limitsOf?: (organizationId: string) => Promise<Pick<StorageLimits, 'storedBytes' | 'uploadsPerDay'> | undefined>
  /** Whether another server still answers requests there: then unfinished files are left alone. */
  shared?: boolean
  log: Log
  /** Engines that outlived an earlier server: the folders that they share with the server stay. */
  keptEngines?: ReadonlySet<string>
}

const tooLarge: SizeFailure = maxBytes =>
  new Failure('payload_too_large', `The file is larger than ${Math.floor(maxBytes / 1024)} KiB, the maximum.`)
const outputTooLarge: SizeFailure = maxBytes =>
  new Failure('worker_error', `The engine wrote a file of more than ${maxBytes} bytes, the maximum of a job.`)

/**
 * Opens the files of all organizations: bytes at `<data dir>/files/<organization>/<file>.<extension>`, rows in the store,
 * and signed URLs. Bytes are on the disk before their row is added, and a row is marked as removed before its bytes are
 * deleted.
 */
export async function openFiles({
  dataDir,
  store,
  linkKey,
  limits,
  limitsOf,
  shared = false,
  keptEngines,
  log,
}: FilesOptions) {
  const folder = join(dataDir, 'files')
  const incoming = join(folder, 'incoming')
  await mkdir(incoming, { recursive: true, mode: 0o700 })
  await chmod(folder, 0o700)
  for (const name of shared ? [] : await readdir(incoming))
    await rm(join(incoming, name), { recursive: true, force: true })
  const workspaces = await openWorkspaces(workFolder(dataDir), log, shared ? 'all' : keptEngines)
  const addresses = openFileUrls(linkKey)
  const parts = openParts({ folder: incoming, tooLarge })
  /** When this process wrote each file, on the monotonic clock. Its row may not exist yet. */
  const writtenAt = new Map<string, number>()
  const receiving = new Set<string>()

  const janitor = openJanitor({
    folder,
    store,
    log,
    isRecent: id => (writtenAt.get(id) ?? -Infinity) > performance.now() - orphanAgeMs,
  })

  /** Refuses a new file before it is written if the store would refuse its row. */
  function admit(): void {
    const { writable } = store.stats()
    if (writable !== true) throw new Failure('disk_full', writable)
  }

  /**
   * Returns the limits that the row of a new file must keep; undefined if there are none. Throws Failure `storage_full` or
   * `rate_limit` if they forbid such a file now, so that an organization without room does not fill the disk.
   */
  async function requireStorage(organizationId: string, file: { bytes: number; isUpload: boolean }) {
    const own = await limitsOf?.(organizationId)
    if (!own || (own.storedBytes === 0 && own.uploadsPerDay === 0)) return undefined
    const { storedBytes, uploadsPerDay } = own
    const limits = { storedBytes, uploadsPerDay, dayStart: dayStartOf(Date.now()) }
    await store.files.requireRoom(organizationId, file, limits)
    return limits
  }

  async function put(id: string, organizationId: string, facts: FileFacts, whole: Written): Promise<NewFile> {
    const file = newFileOf(id, organizationId, facts, whole)
    const now = performance.now()
    for (const [one, at] of writtenAt) {
      if (at > now - orphanAgeMs) break
      writtenAt.delete(one)
    }
    writtenAt.set(id, now)
    await commitFile(whole, filePathOf(folder, file))
    return file
  }

  async function addRow(file: NewFile, storage: StorageLimits | undefined): Promise<FileRecord> {
    try {
      return await store.files.add(file, storage)
    } catch (thrown) {
      await rm(filePathOf(folder, file), { force: true })
      throw thrown
    }
  }

  async function receive(
    organizationId: string,
    source: AsyncIterable<Uint8Array>,
    // `declaredBytes`: its size, if the sender has told it.
    facts: FileFacts & { maxBytes: number; id?: string; declaredBytes?: number },
  ): Promise<FileRecord> {
    admit()
    const id = facts.id ?? newId('file')
    const conflict = () =>
      new Failure('conflict', `The file ${id} has been uploaded already. Request a new upload URL for another file.`)
    // Two uploads of one id would write to the same path.
    if (receiving.has(id)) throw conflict()
    receiving.add(id)
    try {
      if (facts.id !== undefined && (await store.files.find(id))) throw conflict()
      const isUpload = facts.purpose === 'upload'
      const storage = await requireStorage(organizationId, { bytes: facts.declaredBytes ?? 1, isUpload })
      const whole = await write(incoming, source, facts.maxBytes, tooLarge)
      return await addRow(await put(id, organizationId, facts, whole), storage)
    } finally {
      receiving.delete(id)
    }
  }

  async function take(organizationId: string, written: Written, facts: FileFacts): Promise<FileRecord> {
    const isUpload = facts.purpose === 'upload'
    const storage = await requireStorage(organizationId, { bytes: written.bytes, isUpload })
    await syncFile(written.path)
    return await addRow(await put(newId('file'), organizationId, facts, written), storage)
  }

  async function requireRoom(organizationId: string, bytes: number): Promise<void> {
    admit()
    await requireStorage(organizationId, { bytes, isUpload: true })
  }

  async function find(organizationId: string, id: string): Promise<FileRecord | undefined> {
    const file = isId(id) ? await store.files.find(id) : undefined
    return file?.organizationId === organizationId && file.removedAt === null ? file : undefined
  }

  const api = openApiFiles({
    store: store.files,
    find,
    erase: janitor.erase,
    async keep(id, organizationId, facts, source, maxBytes) {
      const whole = await write(incoming, source, maxBytes, tooLarge)
      return await addRow(await put(id, organizationId, facts, whole), undefined)
    },
  })

  const uploads = openUploads({ parts, requireRoom, receive })

  return {
    /** Stores bytes from memory. Rejects with Failure `disk_full`. */
    keep: (organizationId: string, bytes: Uint8Array, facts: FileFacts): Promise<FileRecord> =>
      receive(organizationId, one(bytes), { ...facts, maxBytes: bytes.byteLength }),
    /**
     * Stores a stream of at most `maxBytes`, under `id` if the upload URL has assigned one. Rejects with Failure
     * `payload_too_large`, `disk_full`, `conflict` (a file with this id exists), `storage_full` and `rate_limit` (limits of
     * the organization), or the error of the source.
     */
    receive,
    /**
     * Stores a file that was written to the disk elsewhere: it is moved. Rejects with Failure `storage_full`, `rate_limit`
     * and `disk_full`; then the file stays where it was, or is deleted.
     */
    take,
    /** Throws what storing an upload of this size would throw now, before its bytes arrive. */
    requireRoom,
    /** Uploads in parts by OpenAI's API. */
    uploads,
    /** Stores one part of a file. All its parts together have at most `maxBytes`. Resolves with the SHA-256 of the part. */
    async part(id: string, number: number, source: AsyncIterable<Uint8Array>, maxBytes: number): Promise<string> {
      admit()
      return parts.put(id, number, source, maxBytes)
    },
    /** Stores the file that consists of these parts. Rejects as `receive` does, and with `invalid_value`. */
    async join(
      organizationId: string,
      listed: readonly UploadPart[],
      facts: FileFacts & { maxBytes: number; id: string },
    ) {
      const file = await receive(organizationId, parts.joined(facts.id, listed), facts)
      await parts.remove(facts.id)
      return file
    },
    /**
     * Copies a file that an engine wrote in a workspace. A rename would be unsafe: the engine could exchange the file, or
     * still have it open. The row is added when the job ends; until then `discard` deletes the copy.
     * Rejects with Failure `worker_error` (not a regular file, a link, outside a workspace, too large), `disk_full`.
     */
    async adopt(organizationId: string, path: string, facts: FileFacts & { maxBytes?: number }): Promise<NewFile> {
      const maxBytes = facts.maxBytes ?? limits.output_size
      await using file = await workspaces.open(path, maxBytes)
      const whole = await write(incoming, chunksOf(file), maxBytes, outputTooLarge)
      return await put(newId('file'), organizationId, facts, whole)
    },
    /** Deletes the copies of `adopt` when the end of their job was not stored. Files with a row stay. Never rejects. */
    async discard(files: readonly NewFile[]): Promise<void> {
      for (const file of files)
        try {
          if (!(await store.files.find(file.id))) await rm(filePathOf(folder, file), { force: true })
        } catch (cause) {
          log.warn('An unused file could not be deleted now; it will be deleted later', { file: file.id }, cause)
        }
    },
    /** Returns the path of the bytes; absolute if the data directory is. */
    pathOf: (file: Pick<NewFile, 'id' | 'organizationId' | 'contentType'>): string => filePathOf(folder, file),
    /** Opens the bytes for reading; the caller closes the handle. Undefined: they do not exist. */
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
     * Returns a file of the organization; undefined also for a removed file or one of another organization. An expired
     * file is returned until the sweep removes it, because a pending job may need it.
     */
    find,
    /** Returns a file by its id alone, also a removed one: for signed URLs, whose signature is the right to read. */
    ofAddress: (id: string): Promise<FileRecord | undefined> => store.files.find(id),
    /** Throws Failure `disk_full` while the store cannot write. */
    admit,
    /** Files of an organization, newest first. */
    ...pick(store.files, 'list'),
    /** The videos of an organization. */
    library: {
      ...pick(store.library, 'list', 'find'),
      /** Removes the entry and its files. Undefined: the organization has no such entry. */
      async remove(organizationId: string, id: string): Promise<LibraryItem | undefined> {
        const removed = await store.library.remove(organizationId, id, Date.now())
        if (removed) void janitor.sweep()
        return removed
      },
    },
    /** The files that callers manage through the files API: uploads and results of batches. */
    api,
    /** Removes a file and its bytes. Idempotent; undefined: the organization has no such file. */
    async remove(organizationId: string, id: string): Promise<FileRecord | undefined> {
      if (!isId(id)) return undefined
      const removed = await store.files.remove(organizationId, id, Date.now())
      if (removed) await janitor.erase([removed])
      return removed
    },
    /** Creates a folder for one run of a job. It is removed when it is disposed of, or when the server starts again. */
    workspace: workspaces.make,
    /** Creates a workspace that the given engine can access from its sandbox. */
    workspaceFor: workspaces.makeFor,
    /** Returns the URL with which anybody can read the file until it expires. */
    link: (file: { id: string; name: string }, origin: string, now?: number): string =>
      addresses.read(file, origin, limits.link_lifetime, now),
    /** Whether the signature of such a URL is valid and has not expired. */
    verify: addresses.mayRead,
    /**
     * Returns a URL to which the bytes of a new file can be sent once, within an hour, and the URL with which they can be
     * read afterwards for the maximum lifetime.
     */
    uploadLink(upload: Omit<Upload, 'id'>, origin: string) {
      const [id, name] = [newId('file'), safeFileName(upload.name, 'file')]
      const url = addresses.upload({ ...upload, id, name }, origin, 3_600_000)
      return { id, name, url, readUrl: addresses.read({ id, name }, origin, longestLifetimeMs) }
    },
    /** Returns the file description of a valid upload URL. */
    verifyUpload: addresses.mayUpload,
    storageToken: addresses.storageToken,
    mayStore: addresses.mayStore,
    /** Deletes the bytes of removed and expired files. Never rejects. */
    sweep: janitor.sweep,
    close(): Promise<void> {
      uploads.close()
      parts.close()
      return janitor.close()
    },
  }
}
export type Files = Awaited<ReturnType<typeof openFiles>>

async function* one(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}
