import { randomBytes } from 'node:crypto'
import { createReadStream, statSync } from 'node:fs'
import { basename } from 'node:path'
import { Readable } from 'node:stream'
import { usageFailure } from '../terminal/exit-codes.ts'
import { sizeText } from '../terminal/quantities-text.ts'
import { unreadable } from '../terminal/unreadable.ts'

/** A form with audio. Its body can be opened again, to repeat the request. */
export interface AudioUpload {
  headers: Record<string, string>
  body: () => Readable
}

/** Maximum bytes of standard input, which is kept in memory. */
const maxInputBytes = 256 << 20

/** Audio to send: a file, or bytes from standard input. */
export type Audio = { path: string; bytes: number } | { content: Buffer }

/** Returns the file, if it can be read. Throws with exit code 74. */
export function audioFile(path: string): Audio {
  try {
    const stat = statSync(path)
    if (!stat.isFile()) throw new Error('it is not a file')
    return { path, bytes: stat.size }
  } catch (cause) {
    throw unreadable(`The audio ${path}`, cause)
  }
}

/** Reads audio from standard input. Throws usage when it is empty or too long. */
export async function audioInput(stream: NodeJS.ReadStream): Promise<Audio> {
  const pieces: Buffer[] = []
  let size = 0
  for await (const piece of stream) {
    const bytes = Buffer.from(piece as Buffer)
    size += bytes.length
    if (size > maxInputBytes)
      throw usageFailure(`Standard input is longer than ${sizeText(maxInputBytes)}. Give a file instead.`)
    pieces.push(bytes)
  }
  if (size === 0) throw usageFailure('There is no audio in standard input.')
  return { content: Buffer.concat(pieces) }
}

/** Makes a multipart form of the fields and the audio as `file`. */
export function audioUpload(fields: readonly (readonly [name: string, value: string])[], audio: Audio): AudioUpload {
  const boundary = `infer-${randomBytes(18).toString('base64url')}`
  const part = (disposition: string) => `--${boundary}\r\ncontent-disposition: form-data; ${disposition}\r\n`
  const name = 'path' in audio ? basename(audio.path).replaceAll(/["\r\n]/g, '_') : 'audio'
  const texts = fields.map(([field, value]) => `${part(`name="${field}"`)}\r\n${value}\r\n`).join('')
  const head = Buffer.from(
    `${texts}${part(`name="file"; filename="${name}"`)}content-type: application/octet-stream\r\n\r\n`,
  )
  const tail = Buffer.from(`\r\n--${boundary}--\r\n`)
  const bytes = 'path' in audio ? audio.bytes : audio.content.length
  return {
    headers: {
      'content-type': `multipart/form-data; boundary=${boundary}`,
      'content-length': String(head.length + bytes + tail.length),
    },
    body: () =>
      Readable.from(
        (async function* () {
          yield head
          if (!('path' in audio)) yield audio.content
          // The length was announced: bytes that were added meanwhile are not sent.
          else if (bytes > 0) yield* createReadStream(audio.path, { end: bytes - 1 })
          yield tail
        })(),
      ),
  }
}
