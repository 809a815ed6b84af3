import { randomBytes } from 'node:crypto'
import { open } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { Failure } from '../../failure.ts'
import type { StreamedBody } from '../../models/engine-call.ts'

/** A file in a form. */
export interface FormFile {
  /** Name of the field. */
  name: string
  /** OpenAI refuses files without a name or a type. */
  filename: string
  contentType: string
  path: string
  /** How many bytes of the file are sent. */
  bytes: number
  /** What is sent before them, such as a header. */
  head?: Buffer
}

/** Makes a form for an engine. The files are read from the disk while the form is sent. */
export function formBody(
  fields: readonly (readonly [name: string, value: string])[],
  files: readonly FormFile[],
): { contentType: string; body: StreamedBody } {
  const boundary = `infer-${randomBytes(18).toString('base64url')}`
  const part = (name: string, more = '') =>
    `--${boundary}\r\ncontent-disposition: form-data; name="${name.replaceAll(/["\r\n]/g, '_')}"${more}\r\n`
  const texts = fields.map(([name, value]) => `${part(name)}\r\n${value}\r\n`).join('')
  const pieces: (Buffer | FormFile)[] = [Buffer.from(texts)]
  for (const file of files) {
    const { name, filename, contentType, head } = file
    pieces.push(Buffer.from(`${part(name, `; filename="${filename}"`)}content-type: ${contentType}\r\n\r\n`))
    if (head) pieces.push(head)
    pieces.push(file, Buffer.from('\r\n'))
  }
  pieces.push(Buffer.from(`--${boundary}--\r\n`))
  return {
    contentType: `multipart/form-data; boundary=${boundary}`,
    body: {
      bytes: pieces.reduce((sum, piece) => sum + ('path' in piece ? piece.bytes : piece.length), 0),
      open: () => Readable.from(contentOf(pieces), { objectMode: false, highWaterMark: 1 }),
    },
  }
}

async function* contentOf(pieces: readonly (Buffer | FormFile)[]): AsyncGenerator<Buffer> {
  for (const piece of pieces)
    if ('path' in piece) yield* bytesOf(piece)
    else yield piece
}

const pieceBytes = 256 << 10

/** Yields so many bytes of a file. It is closed after the last piece or when reading stops. */
export async function* bytesOf({ path, bytes }: Pick<FormFile, 'path' | 'bytes'>): AsyncGenerator<Buffer> {
  try {
    await using file = await open(path)
    for (let at = 0; at < bytes; ) {
      const most = Math.min(pieceBytes, bytes - at)
      // A new one each time: the last may still wait to be sent.
      const { buffer, bytesRead } = await file.read(Buffer.allocUnsafe(most), 0, most, at)
      if (bytesRead === 0) throw new Failure('internal_error', 'An input file was truncated while it was sent.')
      at += bytesRead
      yield buffer.subarray(0, bytesRead)
    }
  } catch (thrown) {
    throw Failure.from(thrown)
  }
}
