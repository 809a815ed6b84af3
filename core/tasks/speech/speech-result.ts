import type { SpeechFormat } from '../../schemas/speech-format.ts'
import type { FileUrl } from '../task.ts'

/** The stored result of a speech job. Its file gets an address when the result is read. */
export interface SpeechResult {
  file_id: string
  file_name: string
  content_type: string
  /** Seconds; null if it cannot be measured because ffprobe is not installed. */
  duration: number | null
  format: SpeechFormat
}

/** Returns the result as API clients read it: its file by address and by id. */
export const linkedSpeech = ({ file_id, file_name, ...facts }: SpeechResult, link: FileUrl) => ({
  audio_url: link({ id: file_id, name: file_name }),
  ...facts,
  file_id,
})
