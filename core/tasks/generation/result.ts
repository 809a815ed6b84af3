import { z } from 'zod'
import {
  array,
  integer,
  number,
  object,
  optionalInteger,
  optionalNumber,
  optionalString,
  string,
} from '../../schemas/fields.ts'
import type { GenerationInputs } from '../protocols/generation-call.ts'
import type { Completed } from '../protocols/infer-generation.ts'
import type { FileUrl } from '../task.ts'

/** A file in the result of a task, as API clients read it. */
export const GeneratedFile = z.object({
  url: string(
    'Where to read the file. Signed: it needs no token, and works for a day unless the server is set otherwise.',
  ),
  file_name: string('Name of the file.'),
  content_type: string('Media type, such as `image/png`.'),
  file_size: integer('Bytes.'),
  width: optionalInteger('Pixels.'),
  height: optionalInteger('Pixels.'),
  duration: optionalNumber('Seconds.'),
  fps: optionalNumber('Frames per second.'),
  num_frames: optionalInteger('Number of frames.'),
  thumbnail_url: optionalString('Where to read a small image of it (WebP), under the same conditions.'),
})

const made = {
  width: integer('Pixels.'),
  height: integer('Pixels.'),
  duration_seconds: optionalNumber('Length of the video in seconds.'),
  seed_used: integer('Seed of the first output. The same seed and request give the same output.'),
  seed: integer('The same as `seed_used`.'),
  prompt: string('The prompt that the engine used.'),
  original_prompt: optionalString('The prompt of the request, if it was rewritten.'),
  timings: object('How long it took.', { inference: number('Seconds that the engine worked.') }),
}

/** The wire shape of the result of a task under /slug that makes images. */
export const GeneratedImages = z.object({
  images: array('The images.', GeneratedFile),
  ...made,
})

/** The wire shape of the result of a task under /slug that makes a video. */
export const GeneratedVideo = z.object({
  video: GeneratedFile.describe('The video.'),
  thumbnail_url: optionalString('Where to read a small image of the video (WebP).'),
  num_frames: integer('Number of frames.'),
  fps: number('Frames per second.'),
  ...made,
})

type LinkedFile = z.output<typeof GeneratedFile>

/** The result of a generation, as API clients read it. */
export type LinkedResult = Omit<z.output<typeof GeneratedImages>, 'images'> &
  Partial<z.output<typeof GeneratedImages> & z.output<typeof GeneratedVideo>>

/**
 * A file in the stored result of a job. It has no address: addresses are signed, they expire, and they begin with the
 * origin that the client used, so `linked` adds them when the result is read.
 */
export interface ResultFile extends Omit<LinkedFile, 'url' | 'thumbnail_url'> {
  file_id: string
  /** Present if size and length are the requested ones, because ffprobe is not installed to measure them. */
  figures?: 'requested'
  /** Id of the thumbnail. */
  thumbnail_id?: string
}

/** The stored result of a generation job: `images` or `video`. Field names are those of the API. */
export interface GenerationResult extends Omit<LinkedResult, 'images' | 'video' | 'thumbnail_url'> {
  images?: ResultFile[]
  video?: ResultFile
}

/** Returns the result to store for a generation; `inference` is in seconds. */
export function generationResult(
  kind: 'images' | 'video',
  inputs: GenerationInputs,
  { seed_used, prompt }: Completed,
  files: ResultFile[],
  inference: number,
): GenerationResult {
  const [first] = files
  return {
    ...(kind === 'images' ? { images: files } : { video: first! }),
    duration_seconds: first!.duration,
    width: first!.width ?? inputs.width,
    height: first!.height ?? inputs.height,
    ...(kind === 'images' ? {} : { num_frames: first!.num_frames ?? inputs.num_frames, fps: first!.fps ?? inputs.fps }),
    seed_used,
    seed: inputs.seed,
    prompt: prompt ?? inputs.prompt,
    original_prompt: inputs.original_prompt,
    timings: { inference },
  }
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
