import type { SpeechFormat } from '../../schemas/speech-format.ts'
import type { Link } from '../task.ts'

/** What a job of speech stores as its result. Its file gets an address when the result is read. */
export interface SpeechResult {
  file_id: string
  file_name: string
  content_type: string
  /** Seconds; null where it cannot be told: ffprobe is not installed. */
  duration: number | null
  format: SpeechFormat
}

/** The result as a reader gets it: its file by address and by id. */
export const linkedSpeech = ({ file_id, file_name, ...facts }: SpeechResult, link: Link) => ({
  audio_url: link({ id: file_id, name: file_name }),
  ...facts,
  file_id,
})
