import { randomBytes } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { open, stat } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { imageKindOf } from '../../cpu/image-kind.ts'
import type { StreamedBody } from '../../models/fleet.ts'

export interface FormBody {
  contentType: string
  body: StreamedBody
}

/** Bytes that tell the format of an image. */
const headBytes = 64

/** Makes a form with text fields and images. The images are read from the disk while the form is sent. */
export async function formUpload(
  fields: readonly [name: string, value: string][],
  images: readonly [name: string, path: string][],
): Promise<FormBody> {
  const boundary = `infer-${randomBytes(18).toString('base64url')}`
  const part = (name: string, more: string) =>
    `--${boundary}\r\ncontent-disposition: form-data; name="${name.replaceAll(/["\r\n]/g, '_')}"${more}\r\n`
  const texts = fields.map(([name, value]) => `${part(name, '')}\r\n${value}\r\n`).join('')
  const pieces: (Buffer | string)[] = [Buffer.from(texts)]
  let bytes = Buffer.byteLength(texts)
  const add = (text: string) => {
    pieces.push(Buffer.from(text))
    bytes += Buffer.byteLength(text)
  }
  for (const [at, [name, path]] of images.entries()) {
    const format = await formatOf(path)
    // OpenAI refuses files without a name or a type.
    add(`${part(name, `; filename="image-${at + 1}.${format}"`)}content-type: image/${format}\r\n\r\n`)
    pieces.push(path)
    bytes += (await stat(path)).size
    add('\r\n')
  }
  add(`--${boundary}--\r\n`)
  return {
    contentType: `multipart/form-data; boundary=${boundary}`,
    body: { bytes, open: () => Readable.from(contentOf(pieces), { objectMode: false }) },
  }
}

/** Yields buffers as they are and the content of files, which are named by their paths. */
async function* contentOf(pieces: readonly (Buffer | string)[]): AsyncGenerator<Buffer> {
  for (const piece of pieces)
    if (typeof piece === 'string') yield* createReadStream(piece) as AsyncIterable<Buffer>
    else yield piece
}

async function formatOf(path: string): Promise<string> {
  await using file = await open(path)
  const { buffer, bytesRead } = await file.read(Buffer.alloc(headBytes), 0, headBytes, 0)
  const kind = imageKindOf(buffer.subarray(0, bytesRead))
  return 'format' in kind ? kind.format : 'png'
}
