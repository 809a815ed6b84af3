import type { GenerationResult, ResultFile } from '../tasks/generation/result.ts'

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
