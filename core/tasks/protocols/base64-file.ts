import { randomUUID } from 'node:crypto'
import { open, stat } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { Failure } from '../../failure.ts'
import type { StreamedBody } from '../../models/engine-call.ts'

/** A file whose content stands in a JSON body as base64. */
export class Base64File {
  readonly path: string
  constructor(path: string) {
    this.path = path
  }
}

/** A multiple of 3, so that every piece but the last one needs no padding. */
const pieceBytes = 192 << 10

/**
 * Returns JSON in which every `Base64File` of `value` is the base64 of its file. The files are read while the body is sent:
 * an image can be 100 MB.
 */
export async function jsonWithFiles(value: object): Promise<StreamedBody> {
  const mark = randomUUID()
  const files: { path: string; bytes: number }[] = []
  const text = JSON.stringify(value, (_key, member: unknown) => {
    if (!(member instanceof Base64File)) return member
    files.push({ path: member.path, bytes: 0 })
    return mark
  })
  const parts = text.split(mark).map(part => Buffer.from(part))
  for (const file of files) file.bytes = (await stat(file.path)).size
  const encoded = files.reduce((sum, { bytes }) => sum + 4 * Math.ceil(bytes / 3), 0)

  async function* pieces() {
    for (const [at, part] of parts.entries()) {
      yield part
      const file = files[at]
      if (file) yield* base64Of(file)
    }
  }
  return {
    bytes: parts.reduce((sum, part) => sum + part.length, encoded),
    open: () => Readable.from(pieces(), { objectMode: false, highWaterMark: 1 }),
  }
}

async function* base64Of({ path, bytes }: { path: string; bytes: number }) {
  try {
    await using file = await open(path)
    const buffer = Buffer.allocUnsafe(Math.min(pieceBytes, bytes))
    for (let at = 0; at < bytes; ) {
      const wanted = Math.min(pieceBytes, bytes - at)
      let filled = 0
      while (filled < wanted) {
        const { bytesRead } = await file.read(buffer, filled, wanted - filled, at + filled)
        if (bytesRead === 0) throw new Failure('internal_error', 'An input file was truncated while it was sent.')
        filled += bytesRead
      }
      at += wanted
      yield Buffer.from(buffer.toString('base64', 0, wanted), 'latin1')
    }
  } catch (thrown) {
    throw Failure.from(thrown)
  }
}
