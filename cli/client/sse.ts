import { createParser } from 'eventsource-parser'
import { Failure } from '../../core/failure.ts'

/** A server-sent event: its name (default `message`), and its data lines joined by newlines. */
export interface SseEvent {
  event: string
  data: string
}

/**
 * Parses server-sent events from bytes in chunks of any size, whose lines end with LF or CRLF, as infer's do. Throws
 * Failure `worker_error` when one event is longer than `maxLength` characters.
 */
export function openSseParser(maxLength = 8 << 20) {
  const decoder = new TextDecoder()
  let events: SseEvent[] = []
  const parser = createParser({
    maxBufferSize: maxLength,
    // A message without a type is one of the default type.
    onEvent: ({ event, data }) => events.push({ event: event || 'message', data }),
    onError({ type }) {
      if (type === 'max-buffer-size-exceeded')
        throw new Failure(
          'worker_error',
          `The server sent an event of more than ${maxLength} characters, so the answer was stopped.`,
        )
    },
  })
  return {
    feed(bytes: Uint8Array): SseEvent[] {
      events = []
      parser.feed(decoder.decode(bytes, { stream: true }))
      return events
    },
  }
}
export type SseParser = ReturnType<typeof openSseParser>
