import type { GenerationInputs } from '../protocols/generation-call.ts'
import type { Completed } from '../protocols/infer-generation.ts'

/**
 * A file in the stored result of a job. It has no address: addresses are signed, they expire, and they begin with the
 * origin that the client used, so `linked` adds them when the result is read.
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
  /** Present if size and length are the requested ones, because ffprobe is not installed to measure them. */
  figures?: 'requested'
  /** Id of the thumbnail. */
  thumbnail_id?: string
}

/** The stored result of a generation job: `images` or `video`. Field names are those of the API. */
export interface GenerationResult {
  images?: ResultFile[]
  video?: ResultFile
  /** Duration of the video. */
  duration_seconds?: number
  /** Pixels of the video or of the first image. */
  width: number
  height: number
  num_frames?: number
  fps?: number
  seed_used: number
  seed: number
  prompt: string
  /** The prompt of the request, if `prompt` is a rewritten one. */
  original_prompt?: string
  /** Seconds. */
  timings: { inference: number }
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
    ...(first!.duration === undefined ? {} : { duration_seconds: first!.duration }),
    width: first!.width ?? inputs.width,
    height: first!.height ?? inputs.height,
    ...(kind === 'images' ? {} : { num_frames: first!.num_frames ?? inputs.num_frames, fps: first!.fps ?? inputs.fps }),
    seed_used,
    seed: inputs.seed,
    prompt: prompt ?? inputs.prompt,
    ...(inputs.original_prompt === undefined ? {} : { original_prompt: inputs.original_prompt }),
    timings: { inference },
  }
}
