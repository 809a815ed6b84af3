import { z } from 'zod'
import { namedObject, nonEmptyText, nullish, nullishBoolean } from '../../schemas/fields.ts'
import { resolutions } from '../../schemas/resolution.ts'
import type { Operation } from '../../schemas/task.ts'
import { imageSizes } from './size.ts'

/**
 * The request schemas of the generation tasks under /slug, one for each task. A field has the same name in all of
 * them. Bounds and names come from the specification; names that it does not define come from fal's API.
 */

/** Maximum frames of a generated video. */
export const maxFrames = 300

/** Steps, frames and frames per second of each preset. */
export const generationPresets = {
  fast_draft: { num_inference_steps: 10, num_frames: 41, fps: 16 },
  balanced: { num_inference_steps: 30, num_frames: 81, fps: 16 },
  high_quality: { num_inference_steps: 50, num_frames: 161, fps: 24 },
} as const
export const presetNames = Object.keys(generationPresets) as (keyof typeof generationPresets)[]

const promptExpansion = nullishBoolean(
  'Whether a chat model rewrites the prompt first, where `prompt_rewriting` is configured. The result has both prompts. Default: false.',
)
const promptOptimizer = nullishBoolean('The same as `enable_prompt_expansion`.')
/** A task that does not use its prompt refuses to rewrite it. */
const noPromptExpansion = nullish(
  z.boolean().refine(value => !value, { params: { notImplemented: true } }),
  'The prompt is not used, so `true` is refused.',
)

const side = z.int().min(64).max(2048).meta({ description: 'Pixels.' })

const common = {
  negative_prompt: nullish(z.string().max(10_000), 'What to avoid.'),
  seed: nullish(
    z.int().min(0),
    'Seed of the random choices. The same seed and request give the same output. Default: random.',
  ),
  num_inference_steps: nullish(
    z.int().min(1).max(50),
    'Steps of the model: more take longer and give more detail. Default: that of `preset`, else that of the model, else 30.',
  ),
  guidance_scale: nullish(
    z.number().min(1).max(20),
    'How closely to follow the prompt. Default: that of the model, else 5.',
  ),
  preset: nullish(
    z.enum(presetNames as [keyof typeof generationPresets, ...(keyof typeof generationPresets)[]]),
    'Steps, frames and frames per second at once: `fast_draft` 10, 41, 16; `balanced` 30, 81, 16; `high_quality` 50, 161, 24. Single fields win over it. Default: the values of the model, else those of `balanced`.',
  ),
  previews: nullish(
    z.int().min(0).max(3),
    'How many unfinished images to keep of each image or of the video while it is made, for `GET /api/jobs/{id}/preview`. Engines that have none ignore it. Default: 0.',
  ),
  enable_prompt_expansion: promptExpansion,
  prompt_optimizer: promptOptimizer,
  sync_mode: nullishBoolean(
    'Whether to hold the request until the result is there, for 120 s at most. Default: false.',
  ),
}
const prompt = nonEmptyText.max(10_000).meta({ description: 'What to create.' })

const sizeFields = {
  resolution: nullish(
    z.enum(resolutions),
    'Size class. Which are offered depends on the model. Default: 720p for images, the first of the model for videos.',
  ),
  image_size: nullish(
    z.union([z.enum(imageSizes), z.object({ width: side, height: side })]),
    'Size by name or in pixels; rounded to multiples of 16. Wins over `resolution` and `aspect_ratio`.',
  ),
  width: nullish(side, 'Pixels; rounded to a multiple of 16. Default: as `height`, or by `resolution`.'),
  height: nullish(side, 'Pixels; rounded to a multiple of 16. Default: as `width`, or by `resolution`.'),
}
const aspectRatio = (byDefault: string) =>
  nullish(z.enum(['16:9', '9:16', '1:1']), `Width to height. Default: ${byDefault}.`)
const aspectRatioOrAuto = nullish(
  z.enum(['16:9', '9:16', '1:1', 'auto']),
  'Width to height; `auto` is that of the input image. Default: `auto`.',
)

const imageFields = {
  num_images: nullish(z.int().min(1).max(4), 'How many images to create. Default: 1.'),
  output_format: nullish(z.enum(['png', 'jpeg', 'jpg', 'webp']), 'Format of the files. Default: png.'),
}
const videoFields = {
  num_frames: nullish(
    z.int().min(1).max(maxFrames),
    `Number of frames. Default: that of \`preset\`, or by \`duration\`.`,
  ),
  fps: nullish(z.int().min(1).max(60), 'Frames per second. Default: that of `preset`.'),
  duration: nullish(
    z.union([z.number().min(0.01).max(300), z.string().regex(/^\d{1,3}(\.\d{1,3})?s?$/)]),
    'Length in seconds, such as 5 or `5s`. Sets the number of frames unless `num_frames` is sent.',
  ),
  output_format: nullish(z.literal('mp4'), 'Format of the file. Default: mp4.'),
}
const media = (what: string) =>
  nonEmptyText.meta({ description: `${what} An http(s) URL, a \`data:\` URL, or the id of a file (\`file-…\`).` })
const imageUrl = media('Input image: JPEG, PNG, WebP, GIF or AVIF, 10 MB at most.')
const strength = nullish(
  z.number().min(0).max(1),
  'How far the output may differ from the input image; 0 keeps it. Default: 0.8, with a mask 1.',
)

const TextToImageRequest = namedObject('TextToImageRequest', 'Images from a text.', {
  prompt,
  ...common,
  ...sizeFields,
  aspect_ratio: aspectRatio('1:1, and 16:9 with `resolution`'),
  ...imageFields,
})
const ImageToImageRequest = namedObject('ImageToImageRequest', 'Images from an image and a text.', {
  prompt,
  image_url: imageUrl,
  strength,
  ...common,
  ...sizeFields,
  aspect_ratio: aspectRatioOrAuto,
  ...imageFields,
})
const InpaintingRequest = namedObject('InpaintingRequest', 'Images in which a masked area is created anew.', {
  prompt,
  image_url: imageUrl,
  mask_url: media('Mask image: white areas are created anew, black areas are kept.'),
  strength,
  ...common,
  ...sizeFields,
  aspect_ratio: aspectRatioOrAuto,
  ...imageFields,
})
const TextToVideoRequest = namedObject('TextToVideoRequest', 'A video from a text.', {
  prompt,
  ...common,
  ...sizeFields,
  aspect_ratio: aspectRatio('16:9'),
  ...videoFields,
})
const ImageToVideoRequest = namedObject('ImageToVideoRequest', 'A video from an image and a text.', {
  prompt,
  image_url: imageUrl,
  ...common,
  ...sizeFields,
  aspect_ratio: aspectRatioOrAuto,
  ...videoFields,
})
const SpeechToVideoRequest = namedObject(
  'SpeechToVideoRequest',
  'A video of a person who speaks, from an image and audio.',
  {
    prompt,
    image_url: imageUrl,
    audio_url: media('Audio that is spoken. The video is as long, unless `num_frames` or `duration` is sent.'),
    ...common,
    ...sizeFields,
    aspect_ratio: aspectRatioOrAuto,
    ...videoFields,
  },
)
const VideoInterpolationRequest = namedObject('VideoInterpolationRequest', 'A video with more frames per second.', {
  prompt: nullish(prompt, 'Not used; kept with the result.'),
  video_url: media('The video that gets more frames. Its size and length stay.'),
  ...common,
  enable_prompt_expansion: noPromptExpansion,
  prompt_optimizer: noPromptExpansion,
  fps: videoFields.fps.meta({ description: 'Frames per second of the new video. Default: 60.' }),
  output_format: videoFields.output_format,
})

/** The request of each task, by what an engine does for it. */
export const generationRequests = {
  'create-image': TextToImageRequest,
  'edit-image': ImageToImageRequest,
  inpaint: InpaintingRequest,
  'create-video': TextToVideoRequest,
  'animate-image': ImageToVideoRequest,
  'animate-speech': SpeechToVideoRequest,
  interpolate: VideoInterpolationRequest,
} as const satisfies Partial<Record<Operation, z.ZodType>>

/** A validated request of any task. A field that the task does not have is absent. */
export type GenerationRequest = { prompt?: string | null } & Partial<
  Omit<z.output<typeof InpaintingRequest>, 'prompt' | 'output_format'> &
    Omit<z.output<typeof SpeechToVideoRequest>, 'prompt' | 'output_format'> &
    Omit<z.output<typeof VideoInterpolationRequest>, 'prompt' | 'output_format'>
> & { output_format?: 'png' | 'jpeg' | 'jpg' | 'webp' | 'mp4' | null }

/** Other accepted names of a field: those of fal's models, and those in the stored inputs of a job. */
export const otherNames: Readonly<Record<string, readonly string[]>> = {
  fps: ['frames_per_second'],
  image_url: ['image', 'input_image_url', 'image_urls'],
  mask_url: ['mask', 'mask_image_url'],
  video_url: ['video', 'input_video_url'],
  audio_url: ['audio', 'input_audio_url'],
}
