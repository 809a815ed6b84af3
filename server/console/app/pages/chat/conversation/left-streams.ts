import { randomId } from '../../../components/random-id.ts'
import type { AnswerRequest } from '../message/stream-answer.ts'

/** The stream of an answer: by the request for it until its head has come, then by its job. */
export type StreamSource = { request: AnswerRequest } | { jobId: string }

/** A stream whose answer grows. */
type GrowingStream = StreamSource & {
  /** When the request was sent, Unix milliseconds. */
  began: number
  /** The tab that reads it; null: its page was left. Only one connection reads a stream at a time. */
  tab: string | null
}

/** Signing out removes names with this beginning. The id of the answer follows. */
const beginning = 'infer.person.chat.stream.'
const thisTab = randomId()
/** The longest time that the server may still have a stream of which nothing else is known, milliseconds. */
const maxAgeMs = 3_600_000
/** Ids of the answers whose streams this tab reads. */
const own = new Set<string>()

const read = (answer: string): GrowingStream | undefined => {
  try {
    return (JSON.parse(localStorage.getItem(beginning + answer) ?? 'null') as GrowingStream | null) ?? undefined
  } catch {
    return undefined
  }
}

function write(answer: string, stream: GrowingStream): void {
  try {
    localStorage.setItem(beginning + answer, JSON.stringify(stream))
  } catch {
    // The browser has no room: after a reload the answer is what it was.
  }
}

/** Notes that this tab reads the stream of an answer, and by what another page finds it. */
export function noteStream(answer: string, source: StreamSource): void {
  const began = own.has(answer) ? read(answer)?.began : undefined
  own.add(answer)
  write(answer, { ...source, began: began ?? Date.now(), tab: thisTab })
}

/** Notes that the stream of an answer has ended. */
export function forgetStream(answer: string): void {
  if (own.delete(answer)) localStorage.removeItem(beginning + answer)
}

/** Takes up the stream of an answer whose page was left. Undefined: there is none, or another tab reads it. */
export function takeUpStream(answer: string): GrowingStream | undefined {
  const stream = read(answer)
  if (stream?.tab !== null) return undefined
  own.add(answer)
  write(answer, { ...stream, tab: thisTab })
  return stream
}

/** Lets others take up the streams of this tab, and forgets those of tabs that have ended without leaving them. */
export function watchLeaving(): void {
  for (const name of Object.keys(localStorage).filter(one => one.startsWith(beginning)))
    if (!((read(name.slice(beginning.length))?.began ?? 0) > Date.now() - maxAgeMs)) localStorage.removeItem(name)
  addEventListener('pagehide', () => {
    for (const answer of own) {
      const stream = read(answer)
      if (stream) write(answer, { ...stream, tab: null })
    }
  })
  addEventListener('pageshow', ({ persisted }) => {
    if (!persisted || own.size === 0) return
    // Another tab has gone on with some of them: what it wrote is read again.
    if ([...own].some(answer => read(answer)?.tab !== null)) return location.reload()
    for (const answer of own) write(answer, { ...read(answer)!, tab: thisTab })
  })
}
