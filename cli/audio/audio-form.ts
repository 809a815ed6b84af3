import { createReadStream, statSync } from 'node:fs'
import { basename } from 'node:path'
import { type Form, formOf } from '../client/form.ts'
import { unreadable, usageFailure } from '../terminal/exit-codes.ts'
import { sizeText } from '../terminal/quantities-text.ts'

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

/** Makes a form of the fields and the audio. Its body can be opened again, to repeat the request. */
export function audioUpload(fields: Readonly<Record<string, string | undefined>>, audio: Audio): Form {
  const type = 'application/octet-stream'
  if (!('path' in audio))
    return formOf(fields, { name: 'audio', type, size: audio.content.length, content: () => [audio.content] })
  const { path, bytes: size } = audio
  // The length was announced: bytes that were added meanwhile are not sent.
  const content = () => (size > 0 ? createReadStream(path, { end: size - 1 }) : [])
  return formOf(fields, { name: basename(path), type, size, content })
}
