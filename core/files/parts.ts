import { createReadStream } from 'node:fs'
import { rm } from 'node:fs/promises'
import { Failure } from '../failure.ts'
import { type TooLarge, type Written, write } from './write.ts'

/** As long as the address of an upload works. */
const forgottenMs = 3_600_000
const lookMs = 300_000
const maxParts = 10_000

/** A part that has arrived, as it is named when the whole is put together. */
export interface Part {
  number: number
  /** What its sender was told of it; where it is given it must be the same. */
  etag?: string | undefined
}

interface Upload {
  parts: Map<number, Written>
  /** On the monotonic clock. */
  touchedAt: number
}

const wrong = (message: string) => new Failure('invalid_value', message, { param: 'parts' })

/**
 * Large files that come in parts, each a request of its own, until they are put together. Nothing of it survives the
 * server: who sends in parts begins anew then. What is not finished within the hour is removed.
 */
export function openParts({ folder, tooLarge }: { folder: string; tooLarge: TooLarge }) {
  const uploads = new Map<string, Upload>()

  async function forget(id: string): Promise<void> {
    const parts = uploads.get(id)?.parts.values() ?? []
    uploads.delete(id)
    for (const { path } of parts) await rm(path, { force: true })
  }

  const timer = setInterval(() => {
    const before = performance.now() - forgottenMs
    for (const [id, { touchedAt }] of uploads) if (touchedAt < before) void forget(id)
  }, lookMs).unref()

  return {
    /** Takes one part; one that comes again replaces the one before. All parts of a file have `most` bytes at most. */
    async take(id: string, number: number, source: AsyncIterable<Uint8Array>, most: number): Promise<string> {
      if (!(Number.isSafeInteger(number) && number >= 1 && number <= maxParts))
        throw wrong(`The number of a part is from 1 to ${maxParts}.`)
      const taken = () =>
        [...(uploads.get(id)?.parts ?? [])].reduce((sum, [other, { bytes }]) => sum + (other === number ? 0 : bytes), 0)
      const part = await write(folder, source, most - taken(), () => tooLarge(most), { durable: false })
      if (taken() + part.bytes > most) {
        await rm(part.path, { force: true })
        throw tooLarge(most)
      }
      const upload = uploads.get(id) ?? { parts: new Map<number, Written>(), touchedAt: 0 }
      const before = upload.parts.get(number)
      upload.parts.set(number, part)
      upload.touchedAt = performance.now()
      uploads.set(id, upload)
      if (before) await rm(before.path, { force: true })
      return part.sha256
    },
    /** The bytes of these parts, one behind the other. Throws Failure `invalid_value` for one that has not come. */
    whole(id: string, wanted: readonly Part[]): AsyncIterable<Uint8Array> {
      const parts = uploads.get(id)?.parts
      const found = wanted.map(({ number, etag }) => {
        const part = parts?.get(number)
        if (!part) throw wrong(`Part ${number} of the file ${id} has not been sent, or too long ago. Send it again.`)
        if (etag !== undefined && etag !== part.sha256)
          throw wrong(`Part ${number} of the file ${id} is not the one that was sent last.`)
        return part
      })
      if (found.length === 0) throw wrong('Name the parts of which the file is made.')
      return chained(found.map(({ path }) => path))
    },
    forget,
    close(): void {
      clearInterval(timer)
    },
  }
}

async function* chained(paths: readonly string[]): AsyncGenerator<Uint8Array> {
  for (const path of paths) yield* createReadStream(path, { highWaterMark: 1 << 20 }) as AsyncIterable<Uint8Array>
}
