import { conflict } from '../failure.ts'
import { isId, newId } from '../ids.ts'
import type { ApiFilePage, FileRecord, Store } from '../store/store.ts'
import type { FileFacts } from './file-path.ts'

interface ApiFilesOptions {
  store: Pick<Store['files'], 'find' | 'listOfApi' | 'delete'>
  find: (organizationId: string, id: string) => Promise<FileRecord | undefined>
  erase: (files: readonly FileRecord[]) => Promise<unknown>
  /** Stores a file without the limits of its organization: bytes first, then the row. */
  keep: (
    id: string,
    organizationId: string,
    facts: FileFacts,
    source: AsyncIterable<Uint8Array>,
    maxBytes: number,
  ) => Promise<FileRecord>
}

/** Whether the file was removed or has expired, even if its bytes still exist. */
export const isUnavailable = (file: FileRecord, now = Date.now()): boolean =>
  file.removedAt !== null || (file.expiresAt !== null && file.expiresAt <= now)

const pieceBytes = 256 << 10

/** Joins small pieces, so that a file of many short lines is not written line by line. */
async function* gathered(lines: AsyncIterable<Uint8Array | string>): AsyncGenerator<Uint8Array> {
  let pieces: Uint8Array[] = []
  let bytes = 0
  for await (const line of lines) {
    const piece = typeof line === 'string' ? Buffer.from(line) : line
    pieces.push(piece)
    bytes += piece.byteLength
    if (bytes < pieceBytes) continue
    yield Buffer.concat(pieces)
    pieces = []
    bytes = 0
  }
  if (bytes > 0) yield Buffer.concat(pieces)
}

/** The files that callers manage through the files API: uploads and results of batches. */
export const openApiFiles = ({ store, find, erase, keep }: ApiFilesOptions) => ({
  /** Without removed and expired files. */
  list: (organizationId: string, page: Omit<ApiFilePage, 'now'>): Promise<FileRecord[]> =>
    store.listOfApi(organizationId, { ...page, now: Date.now() }),
  /** Undefined also for a file that has expired, of another organization, or that this API does not have. */
  async find(organizationId: string, id: string): Promise<FileRecord | undefined> {
    const file = await find(organizationId, id)
    return file && file.apiPurpose !== null && !isUnavailable(file) ? file : undefined
  },
  /**
   * Deletes a file and its bytes. False: the organization has no such file. Throws Failure `conflict` if unfinished work
   * needs the file.
   */
  async remove(organizationId: string, id: string): Promise<boolean> {
    if (!isId(id)) return false
    const removed = await store.delete(organizationId, id, Date.now())
    if (removed) await erase([removed])
    return removed !== undefined
  },
  /**
   * Stores a file that the server itself writes, such as the results of a batch. `lines` are written as they come, and
   * are on the disk before the row is added. The limits of the organization do not apply: the work has been done already.
   * With an `id` that was chosen before, a call after a crash stores the file that is missing or returns the one that
   * exists. Rejects with Failure `disk_full`, `payload_too_large`, or the error of `lines`; then nothing is stored.
   */
  async produce(
    organizationId: string,
    lines: AsyncIterable<Uint8Array | string>,
    { id = newId('file'), maxBytes = Infinity, ...facts }: FileFacts & { id?: string; maxBytes?: number },
  ): Promise<FileRecord> {
    const existing = await store.find(id)
    if (existing?.organizationId === organizationId) return existing
    if (existing) throw conflict(`The file ${id} exists already.`)
    return keep(id, organizationId, facts, gathered(lines), maxBytes)
  },
})
