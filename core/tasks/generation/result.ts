import type { GenerationInputs } from '../protocols/generation-call.ts'
import type { Completed } from '../protocols/infer-generation.ts'

/**
 * A file in the stored result of a job. It has no address: addresses are signed, they expire, and they begin with the
 * origin that the reader used, so they are written when the result is read (`linked`).
 */
export interface ResultFile {
  file_id: string
  file_name: string
  content_type: string
  /** Bytes. */
  file_size: number
  width?: number
  height?: number
  /** Seconds. */
  duration?: number
  fps?: number
  num_frames?: number
  /** Present where size and length are those that were asked for: no ffprobe was there to measure them. */
  figures?: 'requested'
  /** A small picture of it. */
  thumbnail_id?: string
}

/** What a generation job stores as its result: `images` for pictures, `video` for videos. Field names are the wire's. */
export interface GenerationResult {
  images?: ResultFile[]
  video?: ResultFile
  /** Of the video; also of the pictures, where all have one size. */
  duration_seconds?: number
  width: number
  height: number
  num_frames?: number
  fps?: number
  seed_used: number
  seed: number
  prompt: string
  /** Seconds. */
  timings: { inference: number }
}

/** Returns the result that is stored for a generation; `inference` is in seconds. */
export function resultOf(
  kind: 'images' | 'video',
  inputs: GenerationInputs,
  { seed_used, prompt }: Completed,
  files: ResultFile[],
  inference: number,
): GenerationResult {
  const [first] = files
  return {
    ...(kind === 'images' ? { images: files } : { video: first! }),
    ...(first!.duration === undefined ? {} : { duration_seconds: first!.duration }),
    width: first!.width ?? inputs.width,
    height: first!.height ?? inputs.height,
    ...(kind === 'images' ? {} : { num_frames: first!.num_frames ?? inputs.num_frames, fps: first!.fps ?? inputs.fps }),
    seed_used,
    seed: inputs.seed,
    prompt: prompt ?? inputs.prompt,
    timings: { inference },
  }
}
