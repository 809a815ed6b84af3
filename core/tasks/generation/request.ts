import { z } from 'zod'
import { resolutions } from '../../schemas/resolution.ts'
import type { GenerationTask } from '../../schemas/task.ts'
import { imageSizes } from './size.ts'

/**
 * The wire shapes of requests for pictures and videos, one for each task, under one name for each field. Bounds are
 * the specification's; names are fal's where the specification has none.
 */

/** Of a video that is made. */
export const maxFrames = 300

/** Steps, frames and frames a second. */
export const presets = {
  fast_draft: { num_inference_steps: 10, num_frames: 41, fps: 16 },
  balanced: { num_inference_steps: 30, num_frames: 81, fps: 16 },
  high_quality: { num_inference_steps: 50, num_frames: 161, fps: 24 },
} as const
export const presetNames = Object.keys(presets) as (keyof typeof presets)[]

/** No model here rewrites prompts yet: asking for it is refused, so that nobody takes it for done. */
const PromptExpansion = z
  .boolean()
  .refine(value => !value, { params: { notImplemented: true } })
  .nullish()
  .meta({ description: 'Whether the prompt is rewritten first. No model here does that: `true` is refused.' })

const side = z.int().min(64).max(2048)

const common = {
  negative_prompt: z.string().max(10_000).nullish(),
  seed: z.int().min(0).nullish().meta({ description: 'Makes the output again; a random one when absent.' }),
  num_inference_steps: z.int().min(1).max(50).nullish(),
  guidance_scale: z.number().min(1).max(20).nullish(),
  preset: z
    .enum(presetNames as [keyof typeof presets, ...(keyof typeof presets)[]])
    .nullish()
    .meta({ description: 'Steps, frames and rate at once; fields of their own win. `balanced` when absent.' }),
  enable_prompt_expansion: PromptExpansion,
  prompt_optimizer: PromptExpansion,
  sync_mode: z.boolean().nullish().meta({ description: 'Hold the request until the result is there, 120 s at most.' }),
}
const prompt = z.string().min(1).max(10_000)

const sized = {
  resolution: z.enum(resolutions).nullish(),
  image_size: z
    .union([z.enum(imageSizes), z.object({ width: side, height: side })])
    .nullish()
    .meta({ description: 'Pixels; made multiples of 16. Wins over `resolution` and `aspect_ratio`.' }),
  width: side.nullish(),
  height: side.nullish(),
}
const aspectRatio = z.enum(['16:9', '9:16', '1:1']).nullish()
/** Also that of the picture that was sent. */
const aspectRatioOrAuto = z.enum(['16:9', '9:16', '1:1', 'auto']).nullish()

const pictures = {
  num_images: z.int().min(1).max(4).nullish(),
  output_format: z.enum(['png', 'jpeg', 'jpg', 'webp']).nullish(),
}
const moving = {
  num_frames: z.int().min(1).max(maxFrames).nullish(),
  fps: z.int().min(1).max(60).nullish(),
  duration: z
    .union([z.number().min(0.01).max(300), z.string().regex(/^\d{1,3}(\.\d{1,3})?s?$/)])
    .nullish()
    .meta({ description: 'Seconds, such as 5 or `5s`; frames by `fps`, where `num_frames` is not given.' }),
  output_format: z.literal('mp4').nullish(),
}
const media = (what: string) =>
  z
    .string()
    .min(1)
    .meta({ description: `${what}: an http(s) address, a \`data:\` address, or the id of a file here.` })
const picture = media('JPEG or PNG, 10 MB at most')
const strength = z.number().min(0).max(1).nullish().meta({ description: 'How far from the picture: 0 keeps it.' })

export const TextToImageRequest = z
  .object({ prompt, ...common, ...sized, aspect_ratio: aspectRatio, ...pictures })
  .meta({ id: 'TextToImageRequest' })
export const ImageToImageRequest = z
  .object({
    prompt,
    image_url: picture,
    strength,
    ...common,
    ...sized,
    aspect_ratio: aspectRatioOrAuto,
    ...pictures,
  })
  .meta({ id: 'ImageToImageRequest' })
export const InpaintingRequest = z
  .object({
    prompt,
    image_url: picture,
    mask_url: media('White is where something new may appear, black is kept'),
    strength,
    ...common,
    ...sized,
    aspect_ratio: aspectRatioOrAuto,
    ...pictures,
  })
  .meta({ id: 'InpaintingRequest' })
export const TextToVideoRequest = z
  .object({ prompt, ...common, ...sized, aspect_ratio: aspectRatio, ...moving })
  .meta({ id: 'TextToVideoRequest' })
export const ImageToVideoRequest = z
  .object({ prompt, image_url: picture, ...common, ...sized, aspect_ratio: aspectRatioOrAuto, ...moving })
  .meta({ id: 'ImageToVideoRequest' })
export const SpeechToVideoRequest = z
  .object({
    prompt,
    image_url: picture,
    audio_url: media('What is spoken; the video is as long, unless told otherwise'),
    ...common,
    ...sized,
    aspect_ratio: aspectRatioOrAuto,
    ...moving,
  })
  .meta({ id: 'SpeechToVideoRequest' })
export const VideoInterpolationRequest = z
  .object({
    prompt: prompt.nullish(),
    video_url: media('The video that gets more frames; its size and length stay'),
    ...common,
    fps: moving.fps.meta({ description: 'Frames a second of the new video; 60 when absent.' }),
    output_format: moving.output_format,
  })
  .meta({ id: 'VideoInterpolationRequest' })

export const generationRequests = {
  'slug/text-to-image': TextToImageRequest,
  'slug/image-to-image': ImageToImageRequest,
  'slug/inpainting': InpaintingRequest,
  'slug/text-to-video': TextToVideoRequest,
  'slug/image-to-video': ImageToVideoRequest,
  'slug/speech-to-video': SpeechToVideoRequest,
  'slug/video-interpolation': VideoInterpolationRequest,
} as const satisfies Record<GenerationTask, z.ZodType>

/** A request of any task, checked: a field that the task does not have is absent. */
export type GenerationRequest = { prompt?: string | null } & Partial<
  Omit<z.output<typeof InpaintingRequest>, 'prompt' | 'output_format'> &
    Omit<z.output<typeof SpeechToVideoRequest>, 'prompt' | 'output_format'> &
    Omit<z.output<typeof VideoInterpolationRequest>, 'prompt' | 'output_format'>
> & { output_format?: 'png' | 'jpeg' | 'jpg' | 'webp' | 'mp4' | null }

/** What the same field is called elsewhere: by fal's models, and in the inputs of a job as it is read back. */
export const otherNames: Readonly<Record<string, readonly string[]>> = {
  fps: ['frames_per_second'],
  image_url: ['image', 'input_image_url', 'image_urls'],
  mask_url: ['mask', 'mask_image_url'],
  video_url: ['video', 'input_video_url'],
  audio_url: ['audio', 'input_audio_url'],
}
