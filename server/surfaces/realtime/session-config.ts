import { z } from 'zod'
import { invalid } from '../../../core/failure.ts'
import { parsed } from '../../../core/schemas/issues.ts'
import { type InputRate, inputRates } from './resample.ts'
import type { TurnDetection } from './voice-activity.ts'

/** What a client can set in a session. */
export interface SessionConfig {
  rate: InputRate
  /** Undefined until the client has named one, if there are several. */
  model: string | undefined
  language: string | undefined
  prompt: string | undefined
  /** Null: the client commits its audio itself. */
  turnDetection: TurnDetection | null
}

export const defaultTurnDetection: TurnDetection = {
  threshold: 0.5,
  prefix_padding_ms: 300,
  silence_duration_ms: 500,
}

const Turns = z.looseObject({
  type: z.string().optional(),
  threshold: z.number().min(0).max(1).nullish(),
  prefix_padding_ms: z.number().int().min(0).max(5_000).nullish(),
  silence_duration_ms: z.number().int().min(20).max(10_000).nullish(),
})
const Transcription = z.looseObject({
  model: z.string().min(1).max(256).nullish(),
  language: z.string().max(32).nullish(),
  prompt: z.string().max(8_192).nullish(),
})
const Format = z.union([
  z.literal('pcm16'),
  z.looseObject({ type: z.string(), rate: z.number().nullish() }),
  z.string().max(64),
])
/** Both forms: the members in `audio.input`, and those of the older `transcription_session.update`. */
const Session = z.looseObject({
  type: z.string().optional(),
  audio: z
    .looseObject({
      input: z
        .looseObject({
          format: Format.nullish(),
          transcription: Transcription.nullish(),
          turn_detection: Turns.nullish(),
        })
        .nullish(),
    })
    .nullish(),
  input_audio_format: Format.nullish(),
  input_audio_transcription: Transcription.nullish(),
  turn_detection: Turns.nullish(),
})

const unsupported = (message: string, param: string) => invalid(param, message, 'unsupported_parameter')

function rateOf(format: z.output<typeof Format>, param: string) {
  const { type, rate } = typeof format === 'string' ? { type: format, rate: undefined } : format
  if (type !== 'pcm16' && type !== 'audio/pcm')
    throw unsupported(`The audio format '${type}' is not supported here. Send audio/pcm: 16-bit samples, mono.`, param)
  const found = inputRates.find(one => one === (rate ?? 24_000))
  if (found) return found
  throw unsupported(`${rate} samples a second are not supported. Send 16000 or 24000.`, param)
}

function turnsOf(turns: z.output<typeof Turns>, before: TurnDetection | null, param: string): TurnDetection {
  if (turns.type !== undefined && turns.type !== 'server_vad')
    throw unsupported(`The turn detection '${turns.type}' is not supported here. Send server_vad or null.`, param)
  const now = before ?? defaultTurnDetection
  return {
    threshold: turns.threshold ?? now.threshold,
    prefix_padding_ms: turns.prefix_padding_ms ?? now.prefix_padding_ms,
    silence_duration_ms: turns.silence_duration_ms ?? now.silence_duration_ms,
  }
}

/** Pure: returns the configuration with the changes of `session.update`. Throws Failure for what is not supported. */
export function changedConfig(before: SessionConfig, session: unknown): SessionConfig {
  const { type, audio, ...older } = parsed(Session, session)
  if (type !== undefined && type !== 'transcription')
    throw unsupported(`Sessions of type '${type}' are not offered here. Open one of type transcription.`, 'type')
  const input = audio?.input ?? {}
  const format = input.format ?? older.input_audio_format
  const transcription = input.transcription ?? older.input_audio_transcription
  const turns = 'turn_detection' in input ? input.turn_detection : older.turn_detection
  const { model, language, prompt } = transcription ?? {}
  return {
    rate: format == null ? before.rate : rateOf(format, 'audio.input.format'),
    model: model ?? before.model,
    language: language === undefined ? before.language : (language ?? undefined),
    prompt: prompt === undefined ? before.prompt : (prompt ?? undefined),
    turnDetection:
      turns === undefined
        ? before.turnDetection
        : turns === null
          ? null
          : turnsOf(turns, before.turnDetection, 'audio.input.turn_detection'),
  }
}

/** Pure: returns the session as its client reads it. */
export const shownConfig = (id: string, { rate, model, language, prompt, turnDetection }: SessionConfig) => ({
  id,
  type: 'transcription',
  object: 'realtime.transcription_session',
  audio: {
    input: {
      format: { type: 'audio/pcm', rate },
      transcription: model === undefined ? null : { model, language: language ?? null, prompt: prompt ?? null },
      turn_detection: turnDetection && { type: 'server_vad', ...turnDetection },
      noise_reduction: null,
    },
  },
})
