import type { Client } from '../client/client.ts'
import type { SseEvent } from '../client/http.ts'
import { type LoadWaitOptions, loadDeadline, untilLoaded, waitOrThrow } from '../client/load-wait.ts'
import { serverRefusal } from '../client/refusal.ts'
import { printable } from '../terminal/paint.ts'
import { lengthText } from '../terminal/quantities-text.ts'
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

/** Reads all pieces as text. */
export async function transcriptText(pieces: AsyncIterable<Buffer>): Promise<string> {
  const all: Buffer[] = []
  for await (const piece of pieces) all.push(piece)
  return Buffer.concat(all).toString('utf8')
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
