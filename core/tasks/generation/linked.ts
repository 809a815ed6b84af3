import type { Link } from '../task.ts'
import type { GenerationResult, ResultFile } from './result.ts'

/** A file of a result as a reader gets it. */
export interface LinkedFile extends Omit<ResultFile, 'file_id' | 'thumbnail_id'> {
  url: string
  thumbnail_url?: string
}

/** The result of a generation as a reader gets it. */
export interface LinkedResult extends Omit<GenerationResult, 'images' | 'video'> {
  images?: LinkedFile[]
  video?: LinkedFile
  /** Of the video. */
  thumbnail_url?: string
}

/** Every thumbnail is one: nobody saves it under a name of its own. */
const thumbnail = 'thumbnail.webp'

/** Returns a file with its address instead of its id. */
export function linkedFile({ file_id, thumbnail_id, ...facts }: ResultFile, link: Link): LinkedFile {
  return {
    url: link({ id: file_id, name: facts.file_name }),
    ...facts,
    ...(thumbnail_id === undefined ? {} : { thumbnail_url: link({ id: thumbnail_id, name: thumbnail }) }),
  }
}

/** Returns a stored result as a reader gets it: files by address instead of by id. */
export function linked({ images, video, ...facts }: GenerationResult, link: Link): LinkedResult {
  const shown = video && linkedFile(video, link)
  return {
    ...(images ? { images: images.map(image => linkedFile(image, link)) } : {}),
    ...(shown ? { video: shown } : {}),
    ...(shown?.thumbnail_url === undefined ? {} : { thumbnail_url: shown.thumbnail_url }),
    ...facts,
  }
}
