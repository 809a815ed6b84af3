import { StringDecoder } from 'node:string_decoder'
import { Failure } from '../../core/failure.ts'

/** A server-sent event: its name (default `message`), and its data lines joined by newlines. */
export interface SseEvent {
  event: string
  data: string
}

/**
 * Parses server-sent events from bytes in chunks of any size. Lines end with LF, CRLF or CR. Ignores comments, `id`,
 * `retry`, events without data and, as the standard requires, everything after the last blank line. Throws Failure
 * `worker_error` when one event is longer than `maxLength` characters.
 */
export function openSseParser(maxLength = 8 << 20) {
  const decoder = new StringDecoder('utf8')
  let first = true
  let line = ''
  let afterCarriageReturn = false
  let event = ''
  let data: string[] = []
  let held = 0

  function take(text: string, events: SseEvent[]) {
    if (text === '') {
      if (data.length > 0) events.push({ event: event || 'message', data: data.join('\n') })
      event = ''
      data = []
      held = 0
      return
    }
    held += text.length
    const colon = text.indexOf(':')
    const field = colon < 0 ? text : text.slice(0, colon)
    const value = colon < 0 ? '' : text.slice(text[colon + 1] === ' ' ? colon + 2 : colon + 1)
    if (field === 'data') data.push(value)
    else if (field === 'event') event = value
  }

  return {
    feed(bytes: Uint8Array): SseEvent[] {
      const events: SseEvent[] = []
      let text = decoder.write(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength))
      if (first && text.length > 0) {
        first = false
        if (text.startsWith('\uFEFF')) text = text.slice(1)
      }
      let start = 0
      for (let at = 0; at < text.length; at++) {
        const code = text.charCodeAt(at)
        const skip = code === 10 && afterCarriageReturn
        afterCarriageReturn = code === 13
        if (skip) {
          start = at + 1
        } else if (code === 10 || code === 13) {
          take(line + text.slice(start, at), events)
          line = ''
          start = at + 1
        }
      }
      line += text.slice(start)
      if (held + line.length > maxLength)
        throw new Failure(
          'worker_error',
          `The server sent an event of more than ${maxLength} characters, so the answer was stopped.`,
        )
      return events
    },
  }
}
export type SseParser = ReturnType<typeof openSseParser>
