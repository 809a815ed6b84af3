import { type GenerationTask, operationOf } from '../../core/schemas/task.ts'
import { generationRequests } from '../../core/tasks/generation/request.ts'
import { usageFailure } from '../terminal/exit-codes.ts'
import type { GenerationFlags } from './options.ts'
import { taskName } from './target.ts'

/** Media as the server takes them: http(s) URLs, data: URLs or file ids. */
export interface MediaFlags {
  image?: string | undefined
  mask?: string | undefined
  video?: string | undefined
  audio?: string | undefined
}

/** The flag of each field. */
const flags: Record<string, string> = {
  prompt: '--prompt',
  negative_prompt: '--negative-prompt',
  enable_prompt_expansion: '--expand-prompt',
  image_url: '--image',
  mask_url: '--mask',
  video_url: '--video',
  audio_url: '--audio',
  seed: '--seed',
  num_frames: '--frames',
  fps: '--fps',
  num_inference_steps: '--steps',
  guidance_scale: '--guidance',
  strength: '--strength',
  resolution: '--resolution',
  aspect_ratio: '--aspect',
  image_size: '--size',
  num_images: '--count',
  preset: '--preset',
  output_format: '--format',
}

/**
 * Returns the inputs of a job in the form of the API. The server decides omitted fields. Throws usage for a field that
 * the task does not have, because the server would ignore it without an error.
 */
export function inputsOf(
  task: GenerationTask,
  prompt: string,
  options: GenerationFlags,
  media: MediaFlags,
): Record<string, unknown> {
  const named: Record<string, unknown> = {
    prompt: prompt === '' ? undefined : prompt,
    negative_prompt: options.negativePrompt,
    enable_prompt_expansion: options.expandPrompt,
    image_url: media.image,
    mask_url: media.mask,
    video_url: media.video,
    audio_url: media.audio,
    seed: options.seed,
    num_frames: options.frames,
    fps: options.fps,
    num_inference_steps: options.steps,
    guidance_scale: options.guidance,
    strength: options.strength,
    resolution: options.resolution,
    aspect_ratio: options.aspect,
    image_size: options.size,
    num_images: options.count,
    preset: options.preset,
    output_format: options.format,
  }
  const inputs = Object.fromEntries(Object.entries(named).filter(([, value]) => value !== undefined))
  const known = generationRequests[operationOf(task)].shape as Record<
    string,
    { safeParse(value: unknown): { success: boolean } }
  >
  const unknown = Object.keys(inputs).find(field => !Object.hasOwn(known, field))
  if (unknown !== undefined) throw usageFailure(`${taskName(task)} takes no ${flags[unknown]!}.`)
  if (prompt === '' && !known.prompt!.safeParse(undefined).success)
    throw usageFailure(`There is no prompt. Describe the result: --prompt "…"`)
  for (const { name, value } of options.set ?? []) {
    if (Object.hasOwn(inputs, name))
      throw usageFailure(`'${name}' is given twice: with ${flags[name]!} and with --set. Remove one.`)
    inputs[name] = value
  }
  return inputs
}
