import { randomBytes } from 'node:crypto'
import { setImmediate as turn } from 'node:timers/promises'
import { bufferOf } from '../../../core/cpu/thread-work.ts'
import { Failure, invalid } from '../../../core/failure.ts'
import { boundedJsonOf, isObject, maxJsonDepth } from '../../../core/json.ts'
import { sampleRate } from '../../../core/media/audio-decoder.ts'
import type { ClientExchange } from '../../http/request/exchange.ts'
import { openAudioBuffer } from './audio-buffer.ts'
import { openPcmResampler } from './resample.ts'
import { changedConfig, defaultTurnDetection, type SessionConfig, shownConfig } from './session-config.ts'
import { preparedFor, type RealtimeOwners, transcribeSamples } from './transcribe-samples.ts'
import { openUtterances, type Utterance } from './utterances.ts'
import { frameSamples, openVoiceActivity } from './voice-activity.ts'

/** Seconds of audio that are held. Speech that goes on for longer becomes several items. */
export const maxSeconds = 60
const maxSamples = maxSeconds * sampleRate
/** Samples that the client must have sent before it commits them: 100 ms. */
const minCommit = sampleRate / 10
/** Samples that are processed at once, so that a large message does not block the event loop. */
const sliceSamples = 16_000
/** Frames before the detected begin of speech that may be needed besides its padding. */
const onsetSamples = 4 * frameSamples

const idOf = (prefix: string) => `${prefix}_${randomBytes(12).toString('hex')}`
const msOf = (samples: number) => Math.round((samples * 1000) / sampleRate)

interface ClientEvent {
  type?: unknown
  event_id?: unknown
  audio?: unknown
  session?: unknown
}

/**
 * A transcription session of OpenAI's Realtime API: reads events of the client and sends events with `emit`. Calls of
 * `handle` must not overlap.
 */
export function openRealtimeSession(
  exchange: ClientExchange,
  model: string | undefined,
  emit: (event: object) => void,
  owners: RealtimeOwners,
) {
  const id = idOf('sess')
  let config: SessionConfig = {
    rate: 24_000,
    model,
    language: undefined,
    prompt: undefined,
    turnDetection: defaultTurnDetection,
  }
  let resample = openPcmResampler(config.rate)
  let voice = config.turnDetection && openVoiceActivity(config.turnDetection)
  /** Position at which `voice` began to listen. */
  let voiceFrom = 0
  const buffer = openAudioBuffer()
  let current: Utterance | undefined
  let previous: string | null = null
  /** Whether the client uses the events of the older API. */
  let older = false

  const send = (event: object) => emit({ event_id: idOf('event'), ...event })
  const utterances = openUtterances(
    (samples, options) => transcribeSamples(exchange, config, { samples, ...options }, owners),
    send,
  )

  function listenAnew() {
    voice = config.turnDetection && openVoiceActivity(config.turnDetection)
    voiceFrom = buffer.end
  }

  function update(session: unknown) {
    const next = changedConfig(config, session)
    if (next.model !== undefined) {
      preparedFor(next, owners)
      if (!owners.admission.allowed(exchange.caller, next.model))
        throw invalid(
          'session.audio.input.transcription.model',
          `The token '${exchange.caller.token.name}' may not use the model '${next.model}'.`,
          'model_not_allowed',
        )
    }
    const { rate, turnDetection } = config
    config = next
    if (next.rate !== rate) resample = openPcmResampler(next.rate)
    if (next.turnDetection !== turnDetection) {
      utterances.drop(current)
      current = undefined
      listenAnew()
    }
    send({ type: older ? 'transcription_session.updated' : 'session.updated', session: shownConfig(id, config) })
  }

  function commit(to: number) {
    const utterance = current ?? utterances.begin(idOf('item'), buffer.start)
    const samples = buffer.slice(utterance.from, to)
    buffer.dropBefore(to)
    current = undefined
    const item_id = utterance.id
    send({ type: 'input_audio_buffer.committed', item_id, previous_item_id: previous })
    const content = [{ type: 'input_audio', transcript: null }]
    const item = { id: item_id, object: 'realtime.item', type: 'message', status: 'completed', role: 'user', content }
    send({ type: older ? 'conversation.item.created' : 'conversation.item.added', previous_item_id: previous, item })
    previous = item_id
    utterances.commit(utterance, samples)
  }

  function start(from: number) {
    current = utterances.begin(idOf('item'), from)
    send({ type: 'input_audio_buffer.speech_started', audio_start_ms: msOf(from), item_id: current.id })
  }

  function stop(to: number) {
    if (!current) return
    send({ type: 'input_audio_buffer.speech_stopped', audio_end_ms: msOf(to), item_id: current.id })
    commit(to)
  }

  function hear(samples: Int16Array) {
    buffer.append(samples)
    if (voice) {
      const padding = Math.round((config.turnDetection!.prefix_padding_ms * sampleRate) / 1000)
      for (const { type, at } of voice.push(samples)) {
        const position = voiceFrom + at
        if (type === 'stopped') stop(position)
        else start(Math.max(buffer.start, position - padding))
      }
      if (current && buffer.end - current.from >= maxSamples) {
        stop(buffer.end)
        start(buffer.end)
      }
      if (!current) buffer.dropBefore(buffer.end - padding - onsetSamples)
    } else current ??= utterances.begin(idOf('item'), buffer.start)
    const { end } = buffer
    const utterance = current
    if (utterance && config.model !== undefined)
      utterances.heard(utterance, end, () => buffer.slice(utterance.from, end))
  }

  async function append(audio: unknown) {
    if (audio === '') return
    const decoded = typeof audio === 'string' ? await owners.cpu.bytesOfBase64(audio) : undefined
    if (!decoded || decoded.length % 2 !== 0)
      throw invalid('audio', "'audio' must be base64 of 16-bit samples, mono, little-endian.")
    const bytes = bufferOf(decoded)
    const added = ((bytes.length / 2) * sampleRate) / config.rate
    if (!voice && buffer.end - buffer.start + added > maxSamples)
      throw new Failure('payload_too_large', `The buffer holds at most ${maxSeconds} s of audio. Commit or clear it.`)
    for (let at = 0; at < bytes.length; at += 2 * sliceSamples) {
      if (at > 0) await turn()
      const samples = new Int16Array(Math.min(sliceSamples, (bytes.length - at) / 2))
      for (let one = 0; one < samples.length; one++) samples[one] = bytes.readInt16LE(at + 2 * one)
      hear(resample(samples))
    }
  }

  function clear() {
    utterances.drop(current)
    current = undefined
    buffer.dropBefore(buffer.end)
    listenAnew()
    send({ type: 'input_audio_buffer.cleared' })
  }

  function commitNow() {
    if (buffer.end - (current?.from ?? buffer.start) < minCommit)
      throw new Failure('invalid_value', 'The buffer has less than 100 ms of audio. Append more before you commit it.')
    preparedFor(config, owners)
    commit(buffer.end)
    // Speech that goes on after the commit is the next item.
    if (voice?.speaking) start(buffer.end)
  }

  async function run({ type, audio, session }: ClientEvent) {
    if (type === 'input_audio_buffer.append') return append(audio)
    if (type === 'input_audio_buffer.commit') return commitNow()
    if (type === 'input_audio_buffer.clear') return clear()
    if (type === 'session.update' || type === 'transcription_session.update') {
      older = type === 'transcription_session.update'
      return update(session)
    }
    throw invalid(
      'type',
      `The event '${String(type).slice(0, 64)}' is not supported in a transcription session.`,
      'unsupported_parameter',
    )
  }

  function refuse(thrown: unknown, eventId?: unknown) {
    const failure = Failure.from(thrown)
    const { type, code, message, param } = failure
    if (code === 'internal_error')
      owners.log.error('A realtime session failed inside infer', { request: exchange.id }, failure.cause)
    const event_id = typeof eventId === 'string' ? eventId.slice(0, 128) : null
    send({ type: 'error', error: { type, code, message, param: param ?? null, event_id } })
  }

  return {
    begin: (): void => send({ type: 'session.created', session: shownConfig(id, config) }),
    /** Handles one message of the client. Never rejects: what is wrong becomes an error event. */
    async handle(text: string): Promise<void> {
      let eventId: unknown
      try {
        const event = eventIn(text)
        eventId = event.event_id
        await run(event)
      } catch (thrown) {
        refuse(thrown, eventId)
      }
    },
    refuse,
    close: (): void => utterances.close(current),
  }
}
export type RealtimeSession = ReturnType<typeof openRealtimeSession>

function eventIn(text: string): ClientEvent {
  const event = boundedJsonOf(text)
  if (event === undefined)
    throw new Failure(
      'invalid_json',
      `The message is not JSON of at most ${maxJsonDepth} levels. Send one event in each message.`,
    )
  if (isObject(event)) return event
  throw new Failure('invalid_type', 'The message is not an object. Send one event in each message.')
}
