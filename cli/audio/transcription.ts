import { createReadStream, statSync } from 'node:fs'
import { basename } from 'node:path'
import type { Client } from '../client/client.ts'
import { type Form, formOf } from '../client/form.ts'
import type { SseEvent } from '../client/http.ts'
import { type LoadWaitOptions, loadDeadline, serverRefusal, untilLoaded, waitOrThrow } from '../client/refusal.ts'
import { unreadable, usageFailure } from '../terminal/exit-codes.ts'
import { lengthText, sizeText } from '../terminal/quantities-text.ts'
import { readBytes } from '../terminal/standard-input.ts'
import { printable } from '../terminal/styled-line.ts'
import type { Terminal } from '../terminal/terminal.ts'

/** Makes the request; called again for each repetition, because a body can be read once. */
type MakeRequest = () => Parameters<Client['raw']>[0]

/** Resolves with the response of the API as it arrives. While the model loads, sends the request again. */
export async function wholeTranscription(
  client: Client,
  request: MakeRequest,
  waitOptions: LoadWaitOptions,
): Promise<AsyncIterable<Buffer>> {
  const { bytes } = await untilLoaded(() => client.raw(request()), waitOptions)
  return bytes
}

/**
 * Resolves with the text of a streamed transcription, ending in a line break, once its first event is there. While the
 * model loads, sends the request again.
 */
export async function streamedTranscription(
  client: Client,
  request: MakeRequest,
  waitOptions: LoadWaitOptions,
): Promise<AsyncIterable<Buffer>> {
  const giveUpAt = loadDeadline()
  for (;;) {
    const events = client.events(request())
    try {
      const first = await events.next()
      return deltasOf(client, first.done ? undefined : first.value, events)
    } catch (thrown) {
      // The refusal comes before the first event, so a second request repeats no text.
      await waitOrThrow(thrown, giveUpAt, waitOptions)
    }
  }
}

async function* deltasOf(
  { url }: Client,
  first: SseEvent | undefined,
  rest: AsyncIterable<SseEvent>,
): AsyncGenerator<Buffer> {
  const textOf = ({ data }: SseEvent): Buffer => {
    const { type, delta, error } = JSON.parse(data) as { type?: string; delta?: string; error?: unknown }
    if (error !== undefined) throw serverRefusal(url, data)
    return Buffer.from(type === 'transcript.text.delta' ? (delta ?? '') : '')
  }
  if (first) yield textOf(first)
  for await (const event of rest) yield textOf(event)
  yield Buffer.from('\n')
}

/** Removes control characters, which a terminal would execute. A piece may end within a character. */
export async function* printablePieces(pieces: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const decoder = new TextDecoder()
  for await (const piece of pieces) yield Buffer.from(printable(decoder.decode(piece, { stream: true })))
}

/** Shows on a terminal how long the work has taken, until its first output. */
export function openElapsed(terminal: Terminal, what: string, now: () => number = () => performance.now()) {
  const began = now()
  const timer = setInterval(() => terminal.progress(`${printable(what)}… ${lengthText((now() - began) / 1000)}`), 1_000)
  const end = () => {
    clearInterval(timer)
    terminal.progress('')
  }
  return {
    /** Passes on the pieces, and ends the display with the first one that is not empty. */
    async *until(pieces: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
      let isOver = false
      for await (const piece of pieces) {
        if (!isOver && piece.length > 0) {
          isOver = true
          end()
        }
        yield piece
      }
    },
    [Symbol.dispose]: end,
  }
}

/** Maximum bytes of standard input, which is kept in memory. */
const maxInputBytes = 256 << 20

/** Audio to send: a file, or bytes from standard input. */
type Audio = { path: string; bytes: number } | { content: Buffer }

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
  const content = await readBytes(stream, maxInputBytes, () =>
    usageFailure(`Standard input is longer than ${sizeText(maxInputBytes)}. Give a file instead.`),
  )
  if (content.length === 0) throw usageFailure('There is no audio in standard input.')
  return { content }
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
