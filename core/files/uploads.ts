import { Failure, invalid } from '../failure.ts'
import { isId, newId } from '../ids.ts'
import type { ApiPurpose, FileRecord } from '../store/store.ts'
import type { FileFacts } from './file-path.ts'
import { type Parts, type UploadPart, verified } from './parts.ts'
import type { Written } from './write.ts'

/** Maximum size of a file that is uploaded in parts. */
export const maxUploadBytes = 8 * 2 ** 30
/** Maximum size of one part. */
export const maxPartBytes = 64 << 20
/** How long an upload can be completed. */
const uploadLifetimeMs = 3_600_000
/** Most pending uploads of an organization, and most ended ones that are remembered in all. */
const [maxPending, maxEnded] = [100, 1000]

/** What the caller says about the file of an upload. */
export interface UploadFacts {
  name: string
  contentType: string
  purpose: ApiPurpose
  /** Size of the whole file. */
  bytes: number
  /** Milliseconds from the end of the upload until the file expires; null: kept until it is deleted. */
  keptMs: number | null
}

export interface UploadRecord extends UploadFacts {
  id: string
  createdAt: number
  expiresAt: number
  status: 'pending' | 'completed' | 'cancelled' | 'expired'
  /** The file, once the upload is completed. */
  file: FileRecord | null
}

interface Entry {
  record: UploadRecord
  organizationId: string
  /** The id of the file, under which its parts are stored. */
  fileId: string
  /** Number of each part by its id, in the order in which they came. */
  numbers: Map<string, number>
  joining: boolean
}

interface UploadsOptions {
  parts: Pick<Parts, 'take' | 'joined' | 'remove'>
  /** Throws if the organization may not store a file of this size, or the disk is full. */
  requireRoom: (organizationId: string, bytes: number) => Promise<void>
  receive: (
    organizationId: string,
    source: AsyncIterable<Uint8Array>,
    facts: FileFacts & { maxBytes: number; id: string; declaredBytes: number },
  ) => Promise<FileRecord>
}

const conflict = (id: string, message: string) => new Failure('conflict', `The upload ${id} ${message}`)

/**
 * Uploads in parts by OpenAI's API: created, filled with parts in any order, completed or cancelled. Like their parts they
 * do not survive a restart of the server; a client begins again.
 */
export function openUploads({ parts, requireRoom, receive }: UploadsOptions) {
  const entries = new Map<string, Entry>()

  async function join({ organizationId, fileId: id, record }: Entry, listed: readonly UploadPart[], md5?: string) {
    const { name, contentType, purpose: apiPurpose, bytes, keptMs } = record
    const facts = { id, name, contentType, purpose: 'upload', apiPurpose, expiresAt: { keptMs } } as const
    const source = verified(parts.joined(id, listed), { bytes, md5 })
    const file = await receive(organizationId, source, { ...facts, maxBytes: bytes, declaredBytes: bytes })
    await parts.remove(id)
    return file
  }

  /** Ends a pending upload and deletes its parts. */
  async function end(entry: Entry, status: 'cancelled' | 'expired'): Promise<void> {
    entry.record = { ...entry.record, status }
    entry.numbers.clear()
    await parts.remove(entry.fileId)
  }

  async function expire(now = Date.now()): Promise<void> {
    let ended = 0
    for (const [id, entry] of [...entries].toReversed()) {
      const { status, expiresAt } = entry.record
      if (status === 'pending' && expiresAt <= now && !entry.joining) await end(entry, 'expired')
      if (status !== 'pending' && (expiresAt <= now || ++ended > maxEnded)) entries.delete(id)
    }
  }
  const timer = setInterval(() => void expire(), 60_000).unref()

  function entryOf(organizationId: string, id: string): Entry {
    const entry = isId(id) ? entries.get(id) : undefined
    if (entry?.organizationId === organizationId) return entry
    throw invalid('upload_id', `No such Upload object: ${id}`, 'not_found')
  }

  /** Returns a pending upload. Throws Failure `not_found` and `conflict`. */
  async function pendingOf(organizationId: string, id: string): Promise<Entry> {
    const entry = entryOf(organizationId, id)
    const { status, expiresAt } = entry.record
    if (status === 'pending' && expiresAt <= Date.now() && !entry.joining) await end(entry, 'expired')
    if (entry.record.status !== 'pending')
      throw conflict(id, `is ${entry.record.status}. Create another upload for another file.`)
    if (entry.joining) throw conflict(id, 'is being completed. Wait for the answer to that request.')
    return entry
  }

  return {
    /** Throws Failure `storage_full`, `rate_limit`, `disk_full`, `payload_too_large`. */
    async create(organizationId: string, facts: UploadFacts): Promise<UploadRecord> {
      if (facts.bytes > maxUploadBytes)
        throw invalid('bytes', `'bytes' is more than ${maxUploadBytes}, the maximum of an upload.`, 'payload_too_large')
      await expire()
      const pending = [...entries.values()].filter(
        one => one.organizationId === organizationId && one.record.status === 'pending',
      )
      if (pending.length >= maxPending)
        throw new Failure(
          'rate_limit',
          `The organization has ${maxPending} pending uploads, the maximum. Complete or cancel one, or wait until one expires.`,
        )
      const promised = pending.reduce((sum, { record }) => sum + record.bytes, 0)
      await requireRoom(organizationId, promised + facts.bytes)
      const now = Date.now()
      const id = newId('upload')
      const times = { createdAt: now, expiresAt: now + uploadLifetimeMs }
      const record: UploadRecord = { ...facts, id, ...times, status: 'pending', file: null }
      entries.set(id, { record, organizationId, fileId: newId('file'), numbers: new Map(), joining: false })
      return record
    },

    /** Throws Failure `not_found` or `conflict` unless the upload takes parts. */
    async requirePending(organizationId: string, id: string): Promise<void> {
      await pendingOf(organizationId, id)
    },

    /** Adds a part, which is moved. Throws Failure `not_found`, `conflict`, `payload_too_large`. */
    async addPart(organizationId: string, id: string, written: Written): Promise<{ id: string; createdAt: number }> {
      const entry = await pendingOf(organizationId, id)
      const part = { id: newId('part'), createdAt: Date.now() }
      const number = entry.numbers.size + 1
      entry.numbers.set(part.id, number)
      try {
        await parts.take(entry.fileId, number, written, entry.record.bytes)
      } catch (thrown) {
        // The number stays in use, because parts that came meanwhile have later ones.
        entry.numbers.delete(part.id)
        entry.numbers.set(`refused ${number}`, number)
        throw thrown
      }
      // Cancelled meanwhile: the part came after its parts were deleted.
      if (entry.record.status !== 'pending') {
        await parts.remove(entry.fileId)
        throw conflict(id, `is ${entry.record.status}. Create another upload for another file.`)
      }
      return part
    },

    /**
     * Joins the parts, in the order of their ids, into the file. Throws Failure `not_found`, `conflict`, `invalid_value`
     * (unknown part, wrong size or checksum) and those of storing a file; the upload stays pending then.
     */
    async complete(organizationId: string, id: string, partIds: readonly string[], md5?: string) {
      const entry = await pendingOf(organizationId, id)
      const listed = partIds.map((partId, at) => {
        const number = entry.numbers.get(partId)
        const param = `part_ids[${at}]`
        if (number === undefined) throw invalid(param, `'${param}' is not the id of a part of the upload ${id}.`)
        return { number }
      })
      if (new Set(partIds).size < partIds.length)
        throw invalid('part_ids', "'part_ids' names a part twice. Name each part once.")
      entry.joining = true
      try {
        const file = await join(entry, listed, md5)
        entry.record = { ...entry.record, status: 'completed', file }
        entry.numbers.clear()
        return entry.record
      } finally {
        entry.joining = false
      }
    },

    /** Deletes the parts. Throws Failure `not_found`, `conflict`. */
    async cancel(organizationId: string, id: string): Promise<UploadRecord> {
      const entry = await pendingOf(organizationId, id)
      await end(entry, 'cancelled')
      return entry.record
    },

    close(): void {
      clearInterval(timer)
    },
  }
}
