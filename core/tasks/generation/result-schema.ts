import { z } from 'zod'
import { GeneratedFile } from './output-file.ts'

const made = {
  width: z.int().describe('Pixels.'),
  height: z.int().describe('Pixels.'),
  duration_seconds: z.number().optional().describe('Length of the video in seconds.'),
  seed_used: z.int().describe('Seed of the first output. The same seed and request give the same output.'),
  seed: z.int().describe('The same as `seed_used`.'),
  prompt: z.string().describe('The prompt that the engine used.'),
  original_prompt: z.string().optional().describe('The prompt of the request, if it was rewritten.'),
  timings: z
    .object({ inference: z.number().describe('Seconds that the engine worked.') })
    .describe('How long it took.'),
}

/** The wire shape of the result of a task under /slug that makes images. */
export const GeneratedImages = z.object({
  images: z.array(GeneratedFile).describe('The images.'),
  ...made,
})

/** The wire shape of the result of a task under /slug that makes a video. */
export const GeneratedVideo = z.object({
  video: GeneratedFile.describe('The video.'),
  thumbnail_url: z.string().optional().describe('Where to read a small image of the video (WebP).'),
  num_frames: z.int().describe('Number of frames.'),
  fps: z.number().describe('Frames per second.'),
  ...made,
})
