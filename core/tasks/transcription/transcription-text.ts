import type { TranscriptionAnswerFormat } from './transcription.ts'
import type { Transcription, TranscriptionFormat, TranscriptionSegment } from './transcription-request.ts'

/** Returns the content type of an answer. */
export const transcriptionType = (format: TranscriptionFormat): string =>
  format.endsWith('json') ? 'application/json' : 'text/plain; charset=utf-8'

/** Returns a transcription in the requested format. */
export function writeTranscription(
  transcription: Transcription,
  { format, requestId }: Pick<TranscriptionAnswerFormat, 'format' | 'requestId'>,
  logprobs?: unknown,
): string {
  const { task, duration, text, segments, usage } = transcription
  const groq = requestId === null ? {} : { x_groq: { id: requestId } }
  switch (format) {
    case 'json':
      return JSON.stringify({ text, ...logprobsOf(logprobs), usage, ...groq })
    case 'verbose_json':
      return JSON.stringify(transcription)
    case 'diarized_json':
      return JSON.stringify({ task, duration, text, segments: segments.map(spoken), usage, ...groq })
    case 'text':
      return `${text}\n`
    case 'srt':
      return linesOf(segments, ',', at => [String(at + 1)]) || '\n'
    case 'vtt':
      return `WEBVTT\n\n${linesOf(segments, '.', () => [])}`
  }
}

/** Returns a segment with its speaker, in the form of `diarized_json` and of streams. */
export const spoken = (
  { start, end, text, speaker }: Pick<TranscriptionSegment, 'start' | 'end' | 'text' | 'speaker'>,
  at: number,
) => ({
  type: 'transcript.text.segment',
  id: `seg_${String(at + 1).padStart(3, '0')}`,
  start,
  end,
  text: text.trim(),
  speaker,
})

/** Returns subtitles: one block per segment, each followed by an empty line. */
function linesOf(segments: readonly TranscriptionSegment[], point: string, head: (at: number) => string[]): string {
  if (segments.length === 0) return ''
  return segments
    .map(({ start, end, text }, at) => {
      // An arrow in a text would be read as the separator of two times.
      const shown = text.trim().replaceAll('-->', '->')
      return [...head(at), `${clock(start, point)} --> ${clock(end, point)}`, shown, ''].join('\n')
    })
    .join('\n')
}

/** `01:02:03.456` */
function clock(seconds: number, point: string): string {
  const ms = Math.round(seconds * 1000)
  const two = (number: number) => String(number).padStart(2, '0')
  const [hours, minutes, whole] = [Math.floor(ms / 3_600_000), Math.floor(ms / 60_000) % 60, Math.floor(ms / 1000) % 60]
  return `${two(hours)}:${two(minutes)}:${two(whole)}${point}${String(ms % 1000).padStart(3, '0')}`
}

/** Returns the log probabilities in OpenAI's form. Entries in other forms are omitted. */
export function logprobsOf(given: unknown): { logprobs?: object[] } {
  if (!Array.isArray(given)) return {}
  const logprobs = (given as { token?: unknown; logprob?: unknown; bytes?: unknown }[])
    .filter(one => typeof one?.token === 'string' && Number.isFinite(one.logprob))
    .map(({ token, logprob }) => ({ token, logprob, bytes: [...Buffer.from(token as string)] }))
  return { logprobs }
}
