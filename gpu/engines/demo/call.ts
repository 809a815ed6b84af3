import { isAbsolute } from 'node:path'
import { z } from 'zod'
import { Failure } from '../../../core/failure.ts'
import { generationTasks, isVideoTask, mediaFor } from '../../../core/schemas/task.ts'
import type { GenerationCall } from '../../../core/tasks/protocols/generation-call.ts'

const file = z.string().refine(isAbsolute, 'must be an absolute path')
const side = z.int().min(16).max(4096)

const Call: z.ZodType<GenerationCall> = z.object({
  task: z.enum(generationTasks),
  model: z.string(),
  inputs: z.object({
    prompt: z.string(),
    negative_prompt: z.string().nullable(),
    seed: z.int().min(0),
    width: side,
    height: side,
    num_images: z.int().min(1).max(16),
    num_frames: z.int().min(1).max(20_000),
    fps: z.int().min(1).max(240),
    num_inference_steps: z.int().min(1).max(1000),
    guidance_scale: z.number(),
    strength: z.number().min(0).max(1),
    output_format: z.enum(['png', 'jpeg', 'webp', 'mp4']),
    image: file.nullable(),
    images: z.array(file).min(2).max(16).optional(),
    background: z.literal('transparent').optional(),
    previews: z.int().min(1).max(3).optional(),
    mask: file.nullable(),
    video: file.nullable(),
    audio: file.nullable(),
    extra: z.record(z.string(), z.unknown()),
  }),
  folder: file,
})

/** Parses the body. Throws Failure `invalid_value` or `missing_required_parameter` with the field as `param`. */
export function readCall(body: unknown): GenerationCall {
  const read = Call.safeParse(body)
  if (!read.success) {
    const [issue] = read.error.issues
    const param = issue?.path.join('.') || 'body'
    throw new Failure('invalid_value', `'${param}' is invalid: ${issue?.message}.`, { param })
  }
  const { task, inputs } = read.data
  const media = mediaFor(task)
  // It draws a voice without the image of a person.
  const needed = media.includes('audio') ? media.filter(field => field !== 'image') : media
  const missing = needed.find(field => inputs[field] === null)
  if (missing !== undefined)
    throw new Failure(
      'missing_required_parameter',
      `The task ${task} requires 'inputs.${missing}', the absolute path of a file.`,
      {
        param: `inputs.${missing}`,
      },
    )
  const video = isVideoTask(task)
  if (video !== (inputs.output_format === 'mp4'))
    throw new Failure('invalid_value', `The task ${task} writes ${video ? 'mp4' : 'png, jpeg or webp'}.`, {
      param: 'inputs.output_format',
    })
  return read.data
}
