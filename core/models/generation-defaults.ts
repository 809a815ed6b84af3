import { z } from 'zod'
import { tasksBy } from '../schemas/task.ts'

/** The other keys of the model in each example. */
const model = {
  id: 'flux-schnell',
  engine: 'python',
  source: '/models/FLUX.1-schnell',
  tasks: tasksBy('create-image'),
}

const side = (name: string, other: string) =>
  z
    .int()
    .min(64)
    .max(2048)
    .multipleOf(16)
    .optional()
    .meta({
      description: `${name} of images and videos whose request names no size and has no image.`,
      unit: 'pixels, a multiple of 16',
      example: 1024,
      with: model,
      absent: `as ${other}; without both 1024 for images, by the first resolution for videos`,
    })

/**
 * The `generation_defaults` key of a model: what requests get that set nothing else. The bounds are those of requests.
 * A `preset` of a request wins over steps, frames and frames per second.
 */
export const GenerationDefaults = z
  .strictObject({
    num_inference_steps: z
      .int()
      .min(1)
      .max(50)
      .optional()
      .meta({ description: 'Steps of the model.', unit: 'steps', example: 4, with: model, absent: '30' }),
    guidance_scale: z.number().min(1).max(20).optional().meta({
      description: 'How closely the model follows prompts.',
      unit: 'factor',
      example: 1,
      with: model,
      absent: '5.0',
    }),
    width: side('Width', 'height'),
    height: side('Height', 'width'),
    num_frames: z
      .int()
      .min(1)
      .max(300)
      .optional()
      .meta({ description: 'Frames of videos.', unit: 'frames', example: 121, with: model, absent: '81' }),
    fps: z.int().min(1).max(60).optional().meta({
      description: 'Frame rate of videos.',
      unit: 'frames per second',
      example: 24,
      with: model,
      absent: '16',
    }),
  })
  .optional()
  .meta({
    description:
      'Values for requests of image and video tasks that set nothing else, because models differ: one that was distilled needs 4 steps, others 50. A `preset` or `quality` in a request wins.',
    example: { num_inference_steps: 4, guidance_scale: 1 },
    with: model,
    absent: 'those of the preset `balanced`',
  })
export type GenerationDefaults = NonNullable<z.output<typeof GenerationDefaults>>
