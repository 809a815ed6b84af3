import type { SpeechFormat } from '../../schemas/speech-format.ts'

/** What a job of speech stores as its result. Its file gets an address when the result is read. */
export interface SpeechResult {
  file_id: string
  file_name: string
  content_type: string
  /** Seconds; null where it cannot be told: ffprobe is not installed. */
  duration: number | null
  format: SpeechFormat
}
