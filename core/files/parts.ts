import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { invalid } from '../failure.ts'
import { type SizeFailure, type Written, write } from './write.ts'

/** The lifetime of an upload URL. */
const abandonedMs = 3_600_000
const checkMs = 300_000
const maxParts = 10_000

/** A stored part in the list that completes an upload. */
export interface UploadPart {
  number: number
  /** The SHA-256 that the client got for the part. If given, it must match the stored part. */
  etag?: string | undefined
}

interface Upload {
  parts: Map<number, Written>
  /** On the monotonic clock. */
  touchedAt: number
}

const invalidParts = (message: string) => invalid('parts', message)

/**
 * Stores the parts of large files, each sent in its own request, until they are joined. Parts do not survive a restart of
 * the server: the client must send them again. Parts of an upload that gets no new part for an hour are removed.
 */
export function openParts({ folder, tooLarge }: { folder: string; tooLarge: SizeFailure }) {
  const uploads = new Map<string, Upload>()

  async function remove(id: string): Promise<void> {
    const parts = uploads.get(id)?.parts.values() ?? []
    uploads.delete(id)
    for (const { path } of parts) await rm(path, { force: true })
  }

  const timer = setInterval(() => {
    const before = performance.now() - abandonedMs
    for (const [id, { touchedAt }] of uploads) if (touchedAt < before) void remove(id)
  }, checkMs).unref()

  const otherBytes = (id: string, number: number) =>
    [...(uploads.get(id)?.parts ?? [])].reduce((sum, [other, { bytes }]) => sum + (other === number ? 0 : bytes), 0)

  /** Adds a part that lies in the folder, or deletes it if all parts together are too large. */
  async function add(id: string, number: number, part: Written, maxBytes: number): Promise<void> {
    if (otherBytes(id, number) + part.bytes > maxBytes) {
      await rm(part.path, { force: true })
      throw tooLarge(maxBytes)
    }
    const upload = uploads.get(id) ?? { parts: new Map<number, Written>(), touchedAt: 0 }
    const replaced = upload.parts.get(number)
    upload.parts.set(number, part)
    upload.touchedAt = performance.now()
    uploads.set(id, upload)
    if (replaced) await rm(replaced.path, { force: true })
  }

  return {
    /** Stores one part, or replaces it if it was sent before. All parts of a file together have at most `maxBytes`. */
    async put(id: string, number: number, source: AsyncIterable<Uint8Array>, maxBytes: number): Promise<string> {
      if (!(Number.isSafeInteger(number) && number >= 1 && number <= maxParts))
        throw invalidParts(`The number of a part must be from 1 to ${maxParts}.`)
      const limit = maxBytes - otherBytes(id, number)
      const part = await write(folder, source, limit, () => tooLarge(maxBytes), { durable: false })
      await add(id, number, part, maxBytes)
      return part.sha256
    },
    /** Moves a part that was written elsewhere on the same disk. Limits are as in `put`. */
    async take(id: string, number: number, written: Written, maxBytes: number): Promise<void> {
      if (number > maxParts) throw invalidParts(`An upload has at most ${maxParts} parts.`)
      const path = join(folder, basename(written.path))
      await rename(written.path, path)
      await add(id, number, { ...written, path }, maxBytes)
    },
    /** Returns the bytes of these parts in order. Throws Failure `invalid_value` for a part that is not stored. */
    joined(id: string, listed: readonly UploadPart[]): AsyncIterable<Uint8Array> {
      const parts = uploads.get(id)?.parts
      const found = listed.map(({ number, etag }) => {
        const part = parts?.get(number)
        if (!part) throw invalidParts(`Part ${number} of the file ${id} is missing or has expired. Send it again.`)
        if (etag !== undefined && etag !== part.sha256)
          throw invalidParts(`The etag of part ${number} of the file ${id} does not match the part that was sent last.`)
        return part
      })
      if (found.length === 0) throw invalidParts('The list of parts is empty. List all parts of the file.')
      return concatenated(found.map(({ path }) => path))
    },
    remove,
    close(): void {
      clearInterval(timer)
    },
  }
}

async function* concatenated(paths: readonly string[]): AsyncGenerator<Uint8Array> {
  for (const path of paths) yield* createReadStream(path, { highWaterMark: 256 << 10 }) as AsyncIterable<Uint8Array>
}
export type Parts = ReturnType<typeof openParts>

/** Passes a file on and throws Failure `invalid_value` at its end if it is not the one with this size and checksum. */
export async function* verified(
  source: AsyncIterable<Uint8Array>,
  { bytes, md5 }: { bytes: number; md5: string | undefined },
): AsyncGenerator<Uint8Array> {
  const hash = md5 === undefined ? undefined : createHash('md5')
  let received = 0
  for await (const piece of source) {
    received += piece.byteLength
    hash?.update(piece)
    yield piece
  }
  if (received !== bytes)
    throw invalid(
      'part_ids',
      `The parts have ${received} bytes together, and the upload was created for ${bytes}. Send the missing parts, or list other ones.`,
    )
  if (hash && hash.digest('hex') !== md5!.toLowerCase())
    throw invalid('md5', "The file does not have the checksum in 'md5'. Send its parts again.")
}
