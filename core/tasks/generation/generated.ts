import { z } from 'zod'
import { MadeFile } from './made-file.ts'

const made = {
  width: z.int(),
  height: z.int(),
  duration_seconds: z.number().optional(),
  seed_used: z.int(),
  seed: z.int(),
  prompt: z.string(),
  timings: z.object({ inference: z.number() }),
}

/** The wire shape of the result of a task below /slug that makes images. */
export const GeneratedImages = z.object({ images: z.array(MadeFile), ...made })

/** The wire shape of the result of a task below /slug that makes a video. */
export const GeneratedVideo = z.object({
  video: MadeFile,
  thumbnail_url: z.string().optional(),
  num_frames: z.int(),
  fps: z.number(),
  ...made,
})
