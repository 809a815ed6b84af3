import { z } from 'zod'

/** A file that a task has made, as its result shows it to whoever reads it. */
export const MadeFile = z.object({
  url: z.string(),
  file_name: z.string(),
  content_type: z.string(),
  file_size: z.int(),
  width: z.int().optional(),
  height: z.int().optional(),
  duration: z.number().optional(),
  fps: z.number().optional(),
  num_frames: z.int().optional(),
  thumbnail_url: z.string().optional(),
})
