import { deflateSync } from 'node:zlib'
import { invalid } from '../../failure.ts'
import { listOf } from '../../json.ts'
import { operationOf } from '../../schemas/task.ts'
import type { Usage } from '../../store/store.ts'
import type { CallerAnswer } from '../engine-request.ts'
import { engineFault, parseAnswer, tokenCount } from '../protocols/answer.ts'
import { languageName } from './languages.ts'
import { showsCompression, type TranscriptionAnswerFormat } from './transcription.ts'
import type { Transcription, TranscriptionSegment, Word } from './transcription-request.ts'
import { writeTranscription } from './transcription-text.ts'

type Answer = Record<string, unknown>

/** Converts an engine's answer to the response format of the caller. */
export function shapeTranscription(bytes: Uint8Array, answerFormat: TranscriptionAnswerFormat): CallerAnswer {
  const answer = parseAnswer(bytes)
  const transcription = transcriptionOf(answer, answerFormat)
  const body = answerFormat.result
    ? JSON.stringify(transcription)
    : writeTranscription(transcription, answerFormat, answerFormat.logprobs ? answer.logprobs : undefined)
  return { body, usage: { ...transcriptionUsage(answer), audioMs: Math.round(answerFormat.seconds * 1000) } }
}

/**
 * Returns the validated transcription of an engine's answer: times are within the duration that was measured when the
 * audio was decoded, and texts are strings. Throws Failure `worker_error` for an answer without text, and
 * `unsupported_parameter` if speakers were requested and the engine reports none.
 */
export function transcriptionOf(answer: Answer, answerFormat: TranscriptionAnswerFormat): Transcription {
  const duration = Math.round(answerFormat.seconds * 1000) / 1000
  const engineSegments = partsOf(answer.segments)
  const operation = operationOf(answerFormat.task)
  const shown = showsCompression(answerFormat)
  const reportedSegments = engineSegments.flatMap(one => segmentOf(one, duration, shown))
  const text = inOneLine(typeof answer.text === 'string' ? answer.text : reportedSegments.map(one => one.text).join(''))
  if (typeof answer.text !== 'string' && !Array.isArray(answer.segments)) throw engineFault('without a text')
  const segments =
    reportedSegments.length > 0 || text === ''
      ? reportedSegments
      : segmentOf({ text, start: 0, end: duration }, duration, shown)
  if (answerFormat.format === 'diarized_json' && segments.some(one => one.speaker === undefined))
    throw invalid(
      'response_format',
      `The engine of '${answerFormat.modelId}' does not distinguish speakers. Choose another 'response_format' than diarized_json, or another model.`,
      'unsupported_parameter',
    )
  return {
    task: operation,
    language: operation === 'translate' ? 'english' : languageOf(answer, answerFormat),
    duration,
    text,
    segments: segments.map((segment, id) => ({ ...segment, id })),
    words: answerFormat.words ? wordsOf(answer, engineSegments, duration) : undefined,
    usage: { type: 'duration', seconds: Math.ceil(duration) },
    x_groq: answerFormat.requestId === null ? undefined : { id: answerFormat.requestId },
  }
}

/**
 * Joins lines, because whisper.cpp begins a line with each segment. A single pattern for the spaces on both sides of a
 * line break would take time quadratic in their number.
 */
const inOneLine = (text: string): string =>
  text
    .split(/[\r\n]+/)
    .map(line => line.trim())
    .filter(line => line !== '')
    .join(' ')

const partsOf = (value: unknown): Answer[] =>
  listOf(value)
    .filter((one): one is Answer => one !== null && typeof one === 'object')
    .slice(0, maxParts)
/** Maximum segments or words. An hour of fast speech has 12,000 words. */
const maxParts = 100_000

const numberOf = (value: unknown, otherwise: number): number => {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value
  return typeof number === 'number' && Number.isFinite(number) ? number : otherwise
}

/** Returns the times of a segment or word, limited to the duration of the audio. */
export function spanOf({ start, end }: Answer, duration: number): { start: number; end: number } {
  const within = (seconds: number) => Math.round(Math.min(Math.max(seconds, 0), duration) * 1000) / 1000
  const from = within(numberOf(start, 0))
  return { start: from, end: Math.max(from, within(numberOf(end, duration))) }
}

/** The compression ratio is computed only if it is `shown`; otherwise it may be 0. */
function segmentOf(engineSegment: Answer, duration: number, shown: boolean): TranscriptionSegment[] {
  if (typeof engineSegment.text !== 'string') return []
  const text = engineSegment.text.replaceAll(/[\r\n]+/g, ' ').trimEnd()
  if (text === '') return []
  const tokens = listOf(engineSegment.tokens)
  return [
    {
      id: 0,
      seek: Math.max(0, Math.floor(numberOf(engineSegment.seek, 0))),
      ...spanOf(engineSegment, duration),
      text,
      tokens: tokens.filter((one): one is number => Number.isSafeInteger(one)).slice(0, 4096),
      temperature: numberOf(engineSegment.temperature, 0),
      avg_logprob: numberOf(engineSegment.avg_logprob, 0),
      compression_ratio: compressionIn(engineSegment, text, shown),
      no_speech_prob: numberOf(engineSegment.no_speech_prob, 0),
      speaker: speakerOf(engineSegment),
    },
  ]
}

export const speakerOf = ({ speaker }: Answer): string | undefined =>
  typeof speaker === 'string' && speaker !== '' ? speaker.slice(0, 64) : undefined

/** By Whisper's definition: bytes of the text divided by bytes of the compressed text. */
function compressionIn(engineSegment: Answer, text: string, shown: boolean): number {
  const reported = numberOf(engineSegment.compression_ratio, Number.NaN)
  if (!Number.isNaN(reported)) return reported
  if (!shown) return 0
  const bytes = Buffer.from(text)
  return Math.round((bytes.length / deflateSync(bytes).length) * 1000) / 1000
}

function languageOf(
  { language, detected_language: detected }: Answer,
  answerFormat: TranscriptionAnswerFormat,
): string {
  for (const reported of [language, detected]) {
    const name = typeof reported === 'string' ? languageName(reported) : undefined
    if (name !== undefined) return name
  }
  return answerFormat.language === null ? 'unknown' : languageName(answerFormat.language)!
}

/** Scripts without spaces between words: in them a piece without a leading space is a word too. */
const unspaced =
  /^[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}\p{sc=Tibetan}]/u

/** Returns the words of the answer, or of its segments, where whisper.cpp reports pieces of words. */
function wordsOf(answer: Answer, segments: readonly Answer[], duration: number): Word[] {
  const own = partsOf(answer.words)
  const words =
    own.length > 0 ? own.map(one => [one]) : segments.flatMap(({ words: inside }) => joined(partsOf(inside)))
  return words.flatMap(pieces => {
    const word = pieces.map(({ word: text }) => (typeof text === 'string' ? text : '')).join('')
    if (word.trim() === '') return []
    const { start } = spanOf(pieces[0]!, duration)
    return [{ word: word.trim(), start, end: Math.max(start, spanOf(pieces.at(-1)!, duration).end) }]
  })
}

/** Joins pieces to words: a piece that begins with white space begins a word. */
function joined(pieces: readonly Answer[]): Answer[][] {
  const words: Answer[][] = []
  for (const piece of pieces) {
    const text = typeof piece.word === 'string' ? piece.word : ''
    const continuesWord = words.length > 0 && text !== '' && !/^\s/.test(text) && !unspaced.test(text)
    if (continuesWord) words.at(-1)!.push(piece)
    else words.push([piece])
  }
  return words
}

/** Returns the token counts that the engine reports. */
export function transcriptionUsage({ usage }: Answer): Usage {
  const counts = (usage ?? {}) as Answer
  return {
    inputTokens: tokenCount(counts.input_tokens ?? counts.prompt_tokens),
    outputTokens: tokenCount(counts.output_tokens ?? counts.completion_tokens),
  }
}
