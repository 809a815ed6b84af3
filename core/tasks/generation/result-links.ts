import type { FileUrl } from '../task.ts'
import type { GenerationResult, ResultFile } from './result.ts'

/** A file in a result, as API clients read it. */
export interface LinkedFile extends Omit<ResultFile, 'file_id' | 'thumbnail_id'> {
  url: string
  thumbnail_url?: string
}

/** The result of a generation, as API clients read it. */
export interface LinkedResult extends Omit<GenerationResult, 'images' | 'video'> {
  images?: LinkedFile[]
  video?: LinkedFile
  /** Thumbnail of the video. */
  thumbnail_url?: string
}

/** All thumbnails have the same file name, because clients do not save them by name. */
const thumbnail = 'thumbnail.webp'

/** Returns a file with its address instead of its id. */
export function linkedFile({ file_id, thumbnail_id, ...facts }: ResultFile, link: FileUrl): LinkedFile {
  return {
    url: link({ id: file_id, name: facts.file_name }),
    ...facts,
    ...(thumbnail_id === undefined ? {} : { thumbnail_url: link({ id: thumbnail_id, name: thumbnail }) }),
  }
}

/** Returns a stored result as API clients read it: files by address instead of by id. */
export function resultWithUrls({ images, video, ...facts }: GenerationResult, link: FileUrl): LinkedResult {
  const linkedVideo = video && linkedFile(video, link)
  return {
    ...(images ? { images: images.map(image => linkedFile(image, link)) } : {}),
    ...(linkedVideo ? { video: linkedVideo } : {}),
    ...(linkedVideo?.thumbnail_url === undefined ? {} : { thumbnail_url: linkedVideo.thumbnail_url }),
    ...facts,
  }
}
