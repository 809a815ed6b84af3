import { z } from 'zod'
import {
  boolean,
  integer,
  nullableInteger,
  nullableString,
  optionalString,
  string,
} from '../../../core/schemas/fields.ts'

const fields = {
  model: z.string().min(1).max(256).describe('Id of a model that creates videos.'),
  prompt: z.string().min(1).max(10_000).describe('What to create.'),
  seconds: z
    .union([z.string().regex(/^\d{1,3}(\.\d{1,3})?$/, 'must be a number of seconds.'), z.number().min(0.01).max(300)])
    .nullish()
    .describe('Length in seconds. Default: 4.'),
  size: z
    .string()
    .regex(/^\d{2,4}x\d{2,4}$/, 'must be a size such as 1280x720.')
    .nullish()
    .describe('Width and height in pixels, such as `1280x720`. Default: that of the model.'),
}
export const VideoCreate = z
  .object({
    ...fields,
    input_reference: z
      .union([
        z.string(),
        z.object({
          image_url: optionalString('An http(s) or `data:` URL.'),
          file_id: optionalString('Id of a file.'),
        }),
      ])
      .nullish()
      .describe('The image that the video begins with: a URL, the id of a file, or an object with one of them.'),
  })
  .meta({ id: 'VideoCreate', description: 'A video to create.' })
export const VideoCreateForm = z
  .object({ ...fields, input_reference: z.file().optional().describe('The image that the video begins with.') })
  .meta({ id: 'VideoCreateForm', description: 'A video to create, as a form.' })

export const VideoObject = z
  .object({
    id: string('Id of the video: `video_…`.'),
    object: z.literal('video'),
    model: string('Id of the model.'),
    status: z.enum(['queued', 'in_progress', 'completed', 'failed']).describe('State of the video.'),
    progress: integer('Per cent.'),
    created_at: integer('Unix seconds.'),
    completed_at: nullableInteger('Unix seconds; null before.'),
    expires_at: nullableInteger('Unix seconds after which it is removed; null if it is kept.'),
    prompt: nullableString('The prompt.'),
    size: string('Width and height in pixels; empty if they follow from the image.'),
    seconds: string('Length in seconds.'),
    remixed_from_video_id: z.null().describe('Always null.'),
    error: z
      .object({ code: string('Error code.'), message: string('What happened.') })
      .nullable()
      .describe('Why it failed; null if it did not.'),
  })
  .meta({ id: 'Video', description: "A video job in OpenAI's form." })
export const VideoPage = z
  .object({
    object: z.literal('list'),
    data: z.array(VideoObject).describe('The videos, newest first.'),
    first_id: nullableString('Id of the first one; null without any.'),
    last_id: nullableString('Id of the last one; null without any.'),
    has_more: boolean('Whether there are more.'),
  })
  .meta({ id: 'VideoPage', description: 'A page of videos.' })
export const VideoDeleted = z
  .object({ id: string('Id of the video.'), object: z.literal('video.deleted'), deleted: z.literal(true) })
  .meta({ id: 'VideoDeleted', description: 'A video that was deleted.' })
