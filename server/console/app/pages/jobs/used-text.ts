import type { Schema } from '../../api/schema.ts'
import { durationText, shortCountText } from '../../components/format.ts'
import { jobsText } from '../../text/jobs.ts'

/** What a job has used, in few characters: its tokens, else what it has made. A dash for nothing. */
export function usedText(usage: Schema<'JobSummary'>['usage']): string {
  if (usage === null) return '–'
  const { input_tokens, output_tokens, images, video_seconds, audio_seconds, characters, documents } = usage
  if (input_tokens + output_tokens > 0)
    return output_tokens === 0
      ? shortCountText(input_tokens)
      : `${shortCountText(input_tokens)} → ${shortCountText(output_tokens)}`
  if (images > 0) return jobsText.images(images)
  const seconds = video_seconds + audio_seconds
  if (seconds > 0) return durationText(seconds * 1_000)
  if (characters > 0) return jobsText.characters(shortCountText(characters))
  return documents > 0 ? jobsText.documents(documents) : '–'
}
