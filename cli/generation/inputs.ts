import type { GenerationTask } from '../../core/schemas/task.ts'
import { generationRequests } from '../../core/tasks/generation/request.ts'
import { usage } from '../exit-codes.ts'
import type { GenerationOptions } from './options.ts'
import { nameOf } from './target.ts'

/** Media as addresses that the server takes: http(s), data: or the id of a file. */
export interface Media {
  image?: string | undefined
  mask?: string | undefined
  video?: string | undefined
  audio?: string | undefined
}

/** The flag by which each field is said. */
const flags: Record<string, string> = {
  prompt: '--prompt',
  negative_prompt: '--negative-prompt',
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
 * The inputs of a job in the words of the API. What was not said is left to the server. Throws usage for what the task
 * does not know: the server would pass it over, and nobody would hear of it.
 */
export function inputsOf(
  task: GenerationTask,
  prompt: string,
  options: GenerationOptions,
  media: Media,
): Record<string, unknown> {
  const named: Record<string, unknown> = {
    prompt: prompt === '' ? undefined : prompt,
    negative_prompt: options.negativePrompt,
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
  const known = generationRequests[task].shape as Record<string, { safeParse(value: unknown): { success: boolean } }>
  const foreign = Object.keys(inputs).find(field => !Object.hasOwn(known, field))
  if (foreign !== undefined) throw usage(`${nameOf(task)} takes no ${flags[foreign]!}.`)
  if (prompt === '' && !known.prompt!.safeParse(undefined).success)
    throw usage(`There is no prompt. Say what is to be seen: --prompt "…"`)
  for (const { name, value } of options.set ?? []) {
    if (Object.hasOwn(inputs, name)) throw usage(`'${name}' is said twice: by ${flags[name]!} and by --set.`)
    inputs[name] = value
  }
  return inputs
}
