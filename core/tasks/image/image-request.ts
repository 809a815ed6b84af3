import { z } from 'zod'
import type { ImageTask } from '../../schemas/task.ts'
import { MadeFile } from '../generation/made-file.ts'
import { imageSize, type Size } from '../generation/size.ts'

/**
 * The wire shapes of requests for pictures in the words of an OpenAI-style API, with the extensions that such servers
 * share. Unknown members are passed over; what would be taken in silence and not done is refused by name.
 */

const notImplemented = { params: { notImplemented: true } }
const maxPrompt = 32_000
export const maxImages = 10
export const maxSources = 16

const least = 64
const most = 2048
/** Width and height of `<width>x<height>`; undefined for anything else. */
const pixelsOf = (size: string): Size | undefined => {
  const [, width, height] = /^(\d{1,5})x(\d{1,5})$/.exec(size) ?? []
  return width === undefined || height === undefined ? undefined : { width: Number(width), height: Number(height) }
}
const fits = (side: number) => side >= least && side <= most && side % 8 === 0

const SizeText = z
  .string()
  .refine(size => size === 'auto' || [pixelsOf(size)].some(one => one && fits(one.width) && fits(one.height)), {
    error: `must be 'auto' or <width>x<height>, both multiples of 8 from ${least} to ${most}.`,
  })
  .meta({ description: `\`<width>x<height>\`, ${least} to ${most} each; made multiples of 16. \`auto\` when absent.` })

const Side = z
  .int()
  .refine(fits, { error: `must be a multiple of 8 from ${least} to ${most}.` })
  .nullish()
  .meta({
    description: 'Pixels. `width` and `height` together are the same as `size`; of one alone the other is 1024.',
  })

interface Sides {
  size?: string | null | undefined
  width?: number | null | undefined
  height?: number | null | undefined
}

/** Returns the size that a request names in either way, in pixels; undefined where it names none. */
export function requestedSize({ size, width, height }: Sides): Size | undefined {
  const pixels = size == null ? undefined : pixelsOf(size)
  if (width == null && height == null) return pixels
  const rest = pixels ?? imageSize('square_hd')
  return { width: width ?? rest.width, height: height ?? rest.height }
}

/** Refuses a width or a height that differs from the one in `size`. */
function sameSize(request: Sides, ctx: z.RefinementCtx): void {
  const pixels = request.size == null ? undefined : pixelsOf(request.size)
  if (!pixels) return
  for (const side of ['width', 'height'] as const)
    if (request[side] != null && request[side] !== pixels[side])
      ctx.addIssue({
        code: 'custom',
        path: [side],
        input: request[side],
        message: `differs from 'size', which is '${request.size}'. Send 'size', or 'width' and 'height'.`,
      })
}

/** Steps of the model. */
export const qualities = {
  auto: 30,
  low: 10,
  medium: 30,
  high: 50,
  standard: 30,
  hd: 50,
} as const
export type Quality = keyof typeof qualities

const model = z.string().min(1).max(128)
const asked = {
  model,
  prompt: z.string().min(1).max(maxPrompt),
  n: z.int().min(1).max(maxImages).nullish().meta({ description: 'How many pictures; 1 when absent.' }),
  size: SizeText.nullish(),
  width: Side,
  height: Side,
  response_format: z.enum(['url', 'b64_json', 'base64']).nullish().meta({
    description: '`url` when absent; `base64` is the same as `b64_json`. The result of a job has addresses always.',
  }),
  output_format: z.enum(['png', 'jpeg', 'webp']).nullish(),
  output_compression: z
    .int()
    .min(0)
    .max(100)
    .refine(value => value === 100, notImplemented)
    .nullish()
    .meta({ description: 'Engines choose it themselves: anything but 100 is refused.' }),
  quality: z
    .enum(Object.keys(qualities) as [Quality, ...Quality[]])
    .nullish()
    .meta({ description: 'Steps, where `num_inference_steps` is not given: 10 for `low`, 50 for `high` and `hd`.' }),
  style: z.enum(['vivid', 'natural']).nullish().meta({ description: 'Taken, and left to the prompt.' }),
  background: z
    .enum(['auto', 'opaque', 'transparent'])
    .refine(value => value !== 'transparent', notImplemented)
    .nullish()
    .meta({ description: 'No engine paints on nothing: `transparent` is refused.' }),
  user: z.string().nullish(),
  stream: z.boolean().nullish().meta({ description: 'The pictures as server-sent events. Of a job it means nothing.' }),
  partial_images: z
    .int()
    .min(0)
    .max(3)
    .nullish()
    .meta({ description: 'The most of them. No engine shows unfinished pictures, so none come.' }),
  negative_prompt: z.string().max(maxPrompt).nullish(),
  seed: z.int().min(0).nullish().meta({ description: 'Makes the pictures again; a random one when absent.' }),
  num_inference_steps: z.int().min(1).max(50).nullish(),
  steps: z.int().min(1).max(50).nullish().meta({ description: 'The same as `num_inference_steps`.' }),
  guidance_scale: z.number().min(1).max(20).nullish(),
}

/** A picture that is sent: as OpenAI's clients write it, or the address or id alone. */
const named = z.string().min(1).meta({ description: 'An http(s) address, a `data:` address, or the id of a file.' })
const ImageInput = z
  .union([
    named,
    z
      .object({ image_url: named.optional(), file_id: named.optional(), url: named.optional() })
      .refine(
        ({ image_url, file_id, url }) => [image_url, file_id, url].filter(one => one !== undefined).length === 1,
        {
          error: "must have exactly one of 'image_url' and 'file_id'.",
        },
      ),
  ])
  .meta({ id: 'ImageReference' })
export type ImageInput = z.output<typeof ImageInput>

export const ImageGenerationRequest = z.object(asked).superRefine(sameSize).meta({ id: 'ImageGenerationRequest' })

const edited = {
  ...asked,
  mask_mode: z
    .enum(['alpha', 'luma'])
    .nullish()
    .meta({ description: '`alpha`, the default: what is transparent is made anew. `luma`: what is white.' }),
  input_fidelity: z.enum(['low', 'high']).nullish().meta({ description: 'Taken; `strength` is what counts.' }),
  strength: z.number().min(0).max(1).nullish().meta({ description: 'How far from the picture: 0 keeps it.' }),
}
export const ImageEditRequest = z
  .object({
    ...edited,
    image: z
      .union([ImageInput, z.array(ImageInput).min(1).max(maxSources)])
      .nullish()
      .meta({ description: 'JPEG or PNG, 10 MB at most. Models here work on one picture.' }),
    images: z.array(ImageInput).min(1).max(maxSources).nullish().meta({ description: 'The same as `image`.' }),
    mask: ImageInput.nullish().meta({ description: 'PNG of the size of the picture.' }),
  })
  .superRefine(sameSize)
  .superRefine(({ image, images }, ctx) => {
    if (image == null && images == null)
      ctx.addIssue({ code: 'invalid_type', expected: 'nonoptional', path: ['image'], input: undefined })
  })
  .meta({ id: 'ImageEditRequest' })

const File = z.file().meta({ description: 'JPEG or PNG, 10 MB at most.' })
/** The same as a form; pictures that are not sent as files are named as in JSON. */
export const ImageEditForm = z
  .object({
    ...edited,
    image: z.union([File, z.array(File).max(maxSources)]).meta({ description: 'Also as `image[]`.' }),
    mask: File.optional(),
  })
  .meta({ id: 'ImageEditForm' })

export const imageRequests = {
  'std/image-generation': ImageGenerationRequest,
  'std/image-edit': ImageEditRequest,
} as const satisfies Record<ImageTask, z.ZodType>

/** A request of either task, checked. */
export type ImageRequest = z.output<typeof ImageGenerationRequest> & Partial<z.output<typeof ImageEditRequest>>

/** What has been made, as the endpoint answers and as the result of a job is read. */
export const ImagesResponse = z
  .object({
    created: z.int(),
    data: z.array(
      z.object({
        url: z.string().optional(),
        b64_json: z.string().optional(),
        revised_prompt: z.string().optional().describe('Where the engine worked with another one.'),
        seed: z.int().describe('Of the request: with it, and the same `n`, the same pictures are made again.'),
      }),
    ),
    images: z.array(MadeFile.omit({ duration: true, fps: true, num_frames: true })),
    output_format: z.enum(['png', 'jpeg', 'webp']),
    size: z.string(),
    seed_used: z.int(),
    timings: z.object({ inference: z.number() }).describe('Seconds.'),
    usage: z
      .object({
        input_tokens: z.int(),
        output_tokens: z.int(),
        total_tokens: z.int(),
        input_tokens_details: z.object({ text_tokens: z.int(), image_tokens: z.int() }),
      })
      .describe('As the engine counts; those that make pictures count no tokens.'),
  })
  .meta({ id: 'ImagesResponse' })
