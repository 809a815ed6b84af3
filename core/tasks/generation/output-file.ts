import { z } from 'zod'

/** A file in the result of a task, as API clients read it. */
export const GeneratedFile = z.object({
  url: z
    .string()
    .describe(
      'Where to read the file. Signed: it needs no token, and works for a day unless the server is set otherwise.',
    ),
  file_name: z.string().describe('Name of the file.'),
  content_type: z.string().describe('Media type, such as `image/png`.'),
  file_size: z.int().describe('Bytes.'),
  width: z.int().optional().describe('Pixels.'),
  height: z.int().optional().describe('Pixels.'),
  duration: z.number().optional().describe('Seconds.'),
  fps: z.number().optional().describe('Frames per second.'),
  num_frames: z.int().optional().describe('Number of frames.'),
  thumbnail_url: z.string().optional().describe('Where to read a small image of it (WebP), under the same conditions.'),
})
