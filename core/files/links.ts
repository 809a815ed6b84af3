import { isGeneration, isImageTask, isPainted, speechTask, type Task } from '../schemas/task.ts'
import type { GenerationResult, ResultFile } from '../tasks/generation/result.ts'
import { type ImageResult, imageUsage } from '../tasks/image/image-result.ts'
import type { SpeechResult } from '../tasks/speech/speech-result.ts'

/** Gives a file its address. */
export type Link = (file: { id: string; name: string }) => string

export interface LinkedFile extends Omit<ResultFile, 'file_id' | 'thumbnail_id'> {
  url: string
  thumbnail_url?: string
}

export interface LinkedResult extends Omit<GenerationResult, 'images' | 'video'> {
  images?: LinkedFile[]
  video?: LinkedFile
  /** Of the video. */
  thumbnail_url?: string
}

/** Every thumbnail is one: nobody saves it under a name of its own. */
const thumbnail = 'thumbnail.webp'

function linkedFile({ file_id, thumbnail_id, ...facts }: ResultFile, link: Link): LinkedFile {
  return {
    url: link({ id: file_id, name: facts.file_name }),
    ...facts,
    ...(thumbnail_id === undefined ? {} : { thumbnail_url: link({ id: thumbnail_id, name: thumbnail }) }),
  }
}

/** A stored result as it is sent: files by address instead of by id. */
export function linked({ images, video, ...facts }: GenerationResult, link: Link): LinkedResult {
  const shown = video && linkedFile(video, link)
  return {
    ...(images ? { images: images.map(image => linkedFile(image, link)) } : {}),
    ...(shown ? { video: shown } : {}),
    ...(shown?.thumbnail_url === undefined ? {} : { thumbnail_url: shown.thumbnail_url }),
    ...facts,
  }
}

/** The same of pictures that were asked for in the words of an OpenAI-style API: under `data` and under `images`. */
export function linkedImages({ created, images, revised_prompt, ...facts }: ImageResult, link: Link) {
  const shown = images.map(image => linkedFile(image, link))
  const revised = revised_prompt === undefined ? {} : { revised_prompt }
  const data = shown.map(({ url }) => ({ url, ...revised, seed: facts.seed_used }))
  return { created, data, images: shown, ...facts, usage: imageUsage }
}

/** The stored result of a job of any task as it is sent. One that names no files is sent as it is stored. */
export function linkedResult(task: Task, stored: unknown, link: Link): unknown {
  if (stored === null) return null
  if (isGeneration(task)) return linked(stored as GenerationResult, link)
  if (isImageTask(task)) return linkedImages(stored as ImageResult, link)
  if (task === speechTask) return linkedSpeech(stored as SpeechResult, link)
  return stored
}

const linkedSpeech = ({ file_id, file_name, ...facts }: SpeechResult, link: Link) => ({
  audio_url: link({ id: file_id, name: file_name }),
  ...facts,
  file_id,
})

/** The files without which the stored result of a job says nothing. */
export function filesIn(task: Task, stored: unknown): string[] {
  if (task === speechTask) return [(stored as SpeechResult).file_id]
  if (!isPainted(task)) return []
  const { images = [], video } = stored as GenerationResult | (ImageResult & { video?: undefined })
  return [...images, ...(video ? [video] : [])].map(({ file_id }) => file_id)
}
