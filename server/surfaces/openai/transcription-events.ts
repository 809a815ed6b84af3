import { Failure } from '../../../core/failure.ts'
import type { CallEnd } from '../../../core/jobs/call.ts'
import type { Usage } from '../../../core/store/store.ts'
import type { EngineStream } from '../../../core/tasks/protocols/engine-stream.ts'
import { audioFailure } from '../../../core/tasks/protocols/openai-audio.ts'
import { eventDataIn, transcriptionPart } from '../../../core/tasks/transcription/transcription-stream.ts'
import { spoken } from '../../../core/tasks/transcription/transcription-text.ts'
import { withFirstPiece } from '../../http/answer/first-piece.ts'
import { sendPieces } from '../../http/answer/send-pieces.ts'
import { eventsHead } from '../../http/answer/sse.ts'
import type { Call } from '../../http/request/call.ts'
import { errorFrame } from '../../http/request/errors.ts'

const eventText = (event: object): string => `data: ${JSON.stringify(event)}\n\n`

/** Whether the engine answers with server-sent events, as it was asked to. */
export const isEventStream = ({ contentType }: EngineStream): boolean => /^text\/event-stream\b/i.test(contentType)

/** What a relayed stream has reported so far. */
interface Heard {
  text: string
  usage: Usage
  failure?: Failure
}

/**
 * Relays the stream of an engine in OpenAI's form, as the engine sends it. Rejects with Failure for what fails before
 * the first event; a later failure is the last event.
 */
export async function relayTranscription(
  call: Call,
  stream: EngineStream,
  seconds: number,
): Promise<CallEnd & { how: 'completed' | 'failed' | 'cancelled' }> {
  const audioMs = Math.round(seconds * 1000)
  const heard: Heard = { text: '', usage: { inputTokens: 0, outputTokens: 0, audioMs } }
  const pieces = await withFirstPiece(eventsOf(call, stream, seconds, heard), () => void stream.bytes.destroy())
  call.abortSource.throwIfAborted()
  call.head(200, ...eventsHead)
  try {
    await sendPieces(call, pieces)
    if (call.abortSource.aborted) throw call.abortSource.reason
  } catch (thrown) {
    const failure = audioFailure(thrown, call.abortSource)
    if (failure.code === 'cancelled') return { how: 'cancelled', usage: heard.usage }
    return { how: 'failed', failure, usage: heard.usage }
  }
  const { failure, usage } = heard
  return failure ? { how: 'failed', failure, usage } : { how: 'completed', usage }
}

async function* eventsOf(
  call: Call,
  { bytes }: EngineStream,
  seconds: number,
  heard: Heard,
): AsyncGenerator<Uint8Array> {
  let begun = false
  let segments = 0
  let whole: { text?: string; logprobs?: object[] } = {}
  const event = (data: object): Uint8Array => {
    begun = true
    return Buffer.from(eventText(data))
  }
  try {
    for await (const data of eventDataIn(bytes)) {
      const part = transcriptionPart(data, seconds)
      if (part?.kind === 'delta') {
        // Whisper begins every text with a space.
        const delta = heard.text === '' ? part.text.trimStart() : part.text
        if (delta === '') continue
        heard.text += delta
        const more = part.logprobs ? { logprobs: part.logprobs } : {}
        yield event({ type: 'transcript.text.delta', delta, ...more })
      } else if (part?.kind === 'segment') yield event(spoken(part.segment, segments++))
      else if (part) {
        const { kind: _, usage, ...rest } = part
        whole = { ...whole, ...rest }
        if (usage) heard.usage = { ...heard.usage, ...usage }
      }
    }
    // Speaches ends its stream with an empty text.
    const text = (whole.text || heard.text).trim()
    const logprobs = whole.logprobs ? { logprobs: whole.logprobs } : {}
    yield event({ type: 'transcript.text.done', text, ...logprobs, usage: durationUsage(seconds) })
  } catch (thrown) {
    const failure = audioFailure(thrown, call.abortSource)
    if (!begun || failure.code === 'cancelled') throw failure
    heard.failure = failure
    yield Buffer.from(errorFrame(failure, call.id))
  }
}

const durationUsage = (seconds: number) => ({ type: 'duration', seconds: Math.ceil(Math.round(seconds * 1000) / 1000) })

/** A whole transcription, in the form of `json` or `diarized_json`. */
interface WholeTranscription {
  text: string
  logprobs?: object[]
  segments?: object[]
  usage: object
}

/** Sends a whole transcription as events, for engines that answer once they have the whole text. No `[DONE]` follows. */
export function sendWhole(call: Call, { text, logprobs, segments = [], usage }: WholeTranscription): void {
  const more = logprobs ? { logprobs } : {}
  const events = [
    ...(text === '' || segments.length > 0 ? [] : [{ type: 'transcript.text.delta', delta: text, ...more }]),
    ...segments,
    { type: 'transcript.text.done', text, ...more, usage },
  ]
  const [contentType, headers] = eventsHead
  call.send(200, events.map(eventText).join(''), contentType, headers)
}
