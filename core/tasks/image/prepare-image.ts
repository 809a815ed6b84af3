import { isObject } from '../../json.ts'
import { definedMembers } from '../../members.ts'
import { parsed } from '../../schemas/issues.ts'
import { type GenerationTask, generationTaskOf, type ImageTask, operationOf } from '../../schemas/task.ts'
import { extraFields } from '../catalog.ts'
import { defaultedInputs, type SetInputs, setFields, withoutDefaulted } from '../generation/input-defaults.ts'
import {
  defaultSize,
  drawnSeed,
  type GenerationModel,
  type MediaReference,
  type PreparedGeneration,
} from '../generation/prepare.ts'
import { generationPresets } from '../generation/request.ts'
import { imageSize, rounded } from '../generation/size.ts'
import type { GenerationInputs } from '../protocols/generation-call.ts'
import { type ImageInput, type ImageRequest, imageRequests, qualities, requestedSize } from './image-request.ts'

/** Whether the task changes an image that the request names. */
const edits = (task: ImageTask): boolean => operationOf(task) === 'edit-image'

/** Returns the task for the engine: an edit with a mask is inpainting. */
export const engineTaskOf = (task: ImageTask, { masked }: { masked: boolean }): GenerationTask =>
  generationTaskOf('image', !edits(task) ? [] : masked ? ['image', 'mask'] : ['image'])

/**
 * Checks a request of the OpenAI-compatible image routes, as `prepareGeneration` does for the routes under /slug.
 * Throws Failure with every invalid field.
 */
export function prepareImage(
  task: ImageTask,
  body: unknown,
  model: GenerationModel,
  drawSeed = drawnSeed,
): PreparedGeneration {
  const request: ImageRequest = parsed(imageRequests[operationOf(task)], withoutModel(body))
  const media = mediaOf(request)
  const masked = media.some(({ kind }) => kind === 'mask')
  const size = requestedSize(request)
  const defaults = model.generation_defaults ?? {}
  const format = request.output_format ?? 'png'
  const compression = (request.output_compression ?? 100) < 100 ? request.output_compression! : undefined
  const { num_inference_steps, steps, quality } = request
  const extra = extraFields(body, { extraParams: model.extra_params })
  return {
    task: engineTaskOf(task, { masked }),
    inputs: {
      prompt: request.prompt,
      negative_prompt: request.negative_prompt ?? null,
      seed: request.seed ?? drawSeed(),
      ...(size ? rounded(size) : (defaultSize(defaults) ?? imageSize('square_hd'))),
      num_images: request.n ?? 1,
      num_frames: 1,
      fps: generationPresets.balanced.fps,
      num_inference_steps:
        num_inference_steps ??
        steps ??
        (quality == null || quality === 'auto' ? defaults.num_inference_steps : undefined) ??
        qualities[quality ?? 'auto'],
      guidance_scale: request.guidance_scale ?? defaults.guidance_scale ?? 5,
      strength: request.strength ?? (masked ? 1 : 0.8),
      output_format: format,
      output_compression: format === 'png' ? undefined : compression,
      background: request.background === 'transparent' ? 'transparent' : undefined,
      previews: (request.stream && request.partial_images) || undefined,
      quality: quality == null || quality === 'auto' ? undefined : plainQuality[quality],
      image: null,
      mask: null,
      video: null,
      audio: null,
      extra,
      ...defaultedInputs(
        { ...setInputs(request), ...setFields(extra) },
        model.comfyui,
        edits(task) && size === undefined ? ['width', 'height'] : [],
      ),
    },
    media,
    sizeFromMedia: edits(task) && size === undefined,
    maskFits: masked,
    lengthFromMedia: false,
    syncMode: false,
  }
}

/** Returns the inputs that a request sets, each with the field by which it does. */
function setInputs(request: ImageRequest): SetInputs {
  const { negative_prompt, seed, guidance_scale, strength, size, width, height, num_inference_steps, steps, n } =
    request
  const quality = request.quality === 'auto' ? undefined : request.quality
  const [sides] = Object.values(setFields({ size, width, height }))
  const [number] = Object.values(setFields({ num_inference_steps, steps, quality }))
  return {
    ...setFields({ negative_prompt, seed, guidance_scale, strength }),
    num_images: n == null || n === 1 ? undefined : 'n',
    width: sides,
    height: sides,
    num_inference_steps: number,
  }
}

/** Returns the stored inputs of such a job as a request that creates the same images again. */
export function imageRequestOf(inputs: GenerationInputs): Record<string, unknown> {
  const { prompt, negative_prompt, num_images, height, output_format, output_compression, quality, background } = inputs
  const { image, images, mask, extra } = inputs
  const { seed, width, num_inference_steps, guidance_scale, strength } = withoutDefaulted(inputs)
  const request = definedMembers({
    prompt,
    negative_prompt,
    seed,
    n: num_images,
    size: width && `${width}x${height}`,
    num_inference_steps,
    guidance_scale,
    output_format,
    output_compression,
    background,
    quality,
    image: images ?? image ?? undefined,
    strength: image === null ? undefined : strength,
  })
  // In a stored mask the white areas are edited, whatever the mask mode of the request was.
  return { ...extra, ...request, ...(mask === null ? {} : { mask, mask_mode: 'luma' }) }
}

/** The model is chosen before: the `model` of the body is ignored and replaced by a value that passes the check. */
const withoutModel = (body: unknown): unknown => (isObject(body) ? { ...body, model: 'any' } : body)

/** The older names of the qualities mean the same as the newer ones. */
const plainQuality = { low: 'low', medium: 'medium', high: 'high', standard: 'medium', hd: 'high' } as const

/** Returns the images and the mask, each with the path of its field. */
function mediaOf({ image, images, mask, mask_mode }: ImageRequest): MediaReference[] {
  const field = image == null ? 'images' : 'image'
  const sent = image ?? images
  const list = Array.isArray(sent) ? sent : sent == null ? [] : [sent]
  return [
    ...list.map((one, at) => mediaReferenceOf('image', Array.isArray(sent) ? `${field}[${at}]` : field, one)),
    ...(mask == null ? [] : [{ ...mediaReferenceOf('mask', 'mask', mask), alpha: mask_mode !== 'luma' }]),
  ]
}

function mediaReferenceOf(kind: 'image' | 'mask', field: string, image: ImageInput): MediaReference {
  if (typeof image === 'string') return { kind, field, value: image }
  const name = (['image_url', 'file_id', 'url'] as const).find(one => image[one] !== undefined)!
  return { kind, field: `${field}.${name}`, value: image[name]! }
}
