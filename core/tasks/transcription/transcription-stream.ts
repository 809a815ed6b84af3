import { isObject, jsonOf, listOf } from '../../json.ts'
import type { Usage } from '../../store/store.ts'
import { engineFault } from '../protocols/answer.ts'
import { errorIn } from '../protocols/engine-error.ts'
import type { TranscriptionSegment } from './transcription-request.ts'
import { spanOf, speakerOf, transcriptionUsage } from './transcription-shape.ts'
import { logprobsOf } from './transcription-text.ts'

/** A part of a streamed transcription, in one form for all engines. */
export type TranscriptionPart =
  | { kind: 'delta'; text: string; logprobs?: object[] }
  | { kind: 'segment'; segment: Pick<TranscriptionSegment, 'start' | 'end' | 'text' | 'speaker'> }
  | { kind: 'done'; text?: string; logprobs?: object[]; usage?: Usage }

type Value = Record<string, unknown>

/** Maximum bytes of one event. */
const maxEvent = 1 << 20

/** Yields the data of each server-sent event. Throws Failure `worker_error` for an event that is too long. */
export async function* eventDataIn(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ''
  let data: string[] = []
  let length = 0
  for await (const piece of bytes) {
    rest += decoder.decode(piece, { stream: true })
    const lines = rest.split(/\r\n|\n|\r(?!$)/)
    rest = lines.pop()!
    if (rest.length + length > maxEvent) throw engineFault(`with an event of more than ${maxEvent >> 10} KiB`)
    for (const line of lines) {
      if (line.startsWith('data:')) {
        data.push(line.slice(line[5] === ' ' ? 6 : 5))
        length += line.length
      }
      if (line !== '' || data.length === 0) continue
      yield data.join('\n')
      data = []
      length = 0
    }
  }
  // Some servers omit the blank line after the last event.
  if (rest.startsWith('data:')) data.push(rest.slice(5).trim())
  if (data.length > 0) yield data.join('\n')
}

/**
 * Parses the data of an event: OpenAI's `transcript.text.*`, vLLM's `transcription.chunk`, and bare pieces of text.
 * Returns undefined for what has no part of the text. Throws the Failure of an event that reports an error, and
 * `worker_error` for anything that is not JSON.
 */
export function transcriptionPart(data: string, seconds: number): TranscriptionPart | undefined {
  if (data.trim() === '[DONE]' || data.trim() === '') return undefined
  const event = jsonOf(data)
  if (event === undefined) throw engineFault('with an event that is not JSON')
  if (!isObject(event)) return undefined
  const failure = errorIn(event)
  if (failure) throw failure
  switch (event.type) {
    case 'transcript.text.delta':
      return typeof event.delta === 'string' ? { kind: 'delta', text: event.delta, ...logprobsIn(event) } : undefined
    case 'transcript.text.segment':
      return typeof event.text === 'string' ? { kind: 'segment', segment: segmentOf(event, seconds) } : undefined
    case 'transcript.text.done':
      return {
        kind: 'done',
        text: typeof event.text === 'string' ? event.text : undefined,
        ...logprobsIn(event),
        usage: transcriptionUsage(event),
      }
    default:
  }
  if (event.type !== undefined) return undefined
  const [choice] = listOf(event.choices) as ({ delta?: Value | null } | null)[]
  const text = choice?.delta?.content ?? (event.choices === undefined ? event.text : undefined)
  if (typeof text === 'string' && text !== '') return { kind: 'delta', text }
  return event.usage ? { kind: 'done', usage: transcriptionUsage(event) } : undefined
}

const logprobsIn = ({ logprobs }: Value): { logprobs?: object[] } => {
  const known = logprobsOf(logprobs)
  return known.logprobs?.length ? known : {}
}

const segmentOf = (event: Value, seconds: number) => ({
  ...spanOf(event, seconds),
  text: event.text as string,
  speaker: speakerOf(event),
})
