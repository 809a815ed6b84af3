import { z } from 'zod'
import {
  array,
  integer,
  namedObject,
  nonEmptyText,
  nullish,
  nullishBoolean,
  nullishString,
  number,
  object,
  objects,
  oneOf,
  optional,
  optionalString,
  string,
} from '../../schemas/fields.ts'
import type { Operation } from '../../schemas/task.ts'
import { GeneratedFile } from '../generation/result.ts'
import { imageSize, type Size } from '../generation/size.ts'

/**
 * The request schemas of the OpenAI-compatible image routes, with the extensions that other such servers share. Unknown
 * fields are ignored. A value that would otherwise be accepted silently without effect is refused and named.
 */

const maxPrompt = 32_000
export const maxImages = 10
export const maxSources = 16

const minSide = 64
const maxSide = 2048
/** Returns width and height from `<width>x<height>`; undefined for other text. */
const pixelsOf = (size: string): Size | undefined => {
  const [, width, height] = /^(\d{1,5})x(\d{1,5})$/.exec(size) ?? []
  return width === undefined || height === undefined ? undefined : { width: Number(width), height: Number(height) }
}
const fits = (side: number) => side >= minSide && side <= maxSide && side % 8 === 0

const SizeText = nullish(
  z
    .string()
    .refine(size => size === 'auto' || [pixelsOf(size)].some(one => one && fits(one.width) && fits(one.height)), {
      error: `must be 'auto' or <width>x<height>, both multiples of 8 from ${minSide} to ${maxSide}.`,
    }),
  `\`<width>x<height>\` in pixels, multiples of 8 from ${minSide} to ${maxSide}; rounded to multiples of 16. Default: \`auto\`.`,
)

const Side = nullish(
  z.int().refine(fits, { error: `must be a multiple of 8 from ${minSide} to ${maxSide}.` }),
  'Pixels. `width` and `height` together are the same as `size`; of one alone the other is 1024.',
)

interface Sides {
  size?: string | null | undefined
  width?: number | null | undefined
  height?: number | null | undefined
}

/** Returns the size in pixels from `size`, or from `width` and `height`; undefined if a request has none. */
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

const model = nonEmptyText.max(128).meta({ description: 'Id of the model, as in `GET /std/v1/models`.' })
const generationFields = {
  model,
  prompt: nonEmptyText.max(maxPrompt).meta({ description: 'What to create.' }),
  n: nullish(z.int().min(1).max(maxImages), 'How many images to create. Default: 1.'),
  size: SizeText,
  width: Side,
  height: Side,
  response_format: nullish(
    z.enum(['url', 'b64_json', 'base64']),
    '`url`: addresses of files. `b64_json` or `base64`: the bytes in base64; the result of a job has addresses in any case. Default: `url`; `b64_json` where the model is asked for as `gpt-image…`, `chatgpt-image…` or `openai/gpt-image…`.',
  ),
  output_format: nullish(z.enum(['png', 'jpeg', 'webp']), 'Format of the files. Default: png.'),
  output_compression: nullish(
    z.int().min(0).max(100),
    'Quality of JPEG and WebP files, 0 to 100: lower values give smaller files. Has no effect on PNG. Default: 100, with which the engine chooses.',
  ),
  quality: nullish(
    z.enum(Object.keys(qualities) as [Quality, ...Quality[]]),
    'Steps of the model: 10 for `low`, 50 for `high` and `hd`, 30 for `medium` and `standard`; `auto` takes those of the model, else 30. `num_inference_steps` wins over it. Default: `auto`.',
  ),
  style: nullish(
    z.enum(['vivid', 'natural']),
    'Accepted for compatibility; has no effect. Describe the style in the prompt.',
  ),
  background: nullish(
    z.enum(['auto', 'opaque', 'transparent']),
    '`transparent`: pixels without content are transparent, only with `output_format` png or webp and engines that can. Default: `auto`.',
  ),
  moderation: nullish(z.enum(['auto', 'low']), 'Accepted for compatibility; has no effect.'),
  user: nullishString('Your own id of the end user. Accepted for compatibility; has no effect.'),
  stream: nullishBoolean('Whether to send the images as server-sent events. Has no effect for a job. Default: false.'),
  partial_images: nullish(
    z.int().min(0).max(3),
    'How many unfinished images to send before each image, with `stream`. Engines that show none send none. Default: 0.',
  ),
  negative_prompt: nullish(z.string().max(maxPrompt), 'What to avoid.'),
  seed: nullish(
    z.int().min(0),
    'Seed of the random choices. The same seed and request give the same images. Default: random.',
  ),
  num_inference_steps: nullish(
    z.int().min(1).max(50),
    'Steps of the model: more take longer and give more detail. Default: that of `quality`.',
  ),
  steps: nullish(z.int().min(1).max(50), 'The same as `num_inference_steps`.'),
  guidance_scale: nullish(z.number().min(1).max(20), 'How closely to follow the prompt. Default: 5.'),
}

/** A reference to an image: an object as OpenAI's clients send it, or the URL or id alone. */
const named = nonEmptyText.meta({ description: 'An http(s) URL, a `data:` URL, or the id of a file (`file-…`).' })
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
  .meta({
    id: 'ImageReference',
    description: 'An image: a URL or the id of a file, alone or in one field of an object.',
  })
export type ImageInput = z.output<typeof ImageInput>

/** Refuses a transparent background in a format without transparency. */
function formatFits(request: { background?: unknown; output_format?: unknown }, ctx: z.RefinementCtx): void {
  if (request.background === 'transparent' && request.output_format === 'jpeg')
    ctx.addIssue({
      code: 'custom',
      path: ['background'],
      input: request.background,
      message: "cannot be transparent in JPEG. Send 'output_format': png or webp.",
    })
}

export const ImageGenerationRequest = z
  .object(generationFields)
  .superRefine(sameSize)
  .superRefine(formatFits)
  .meta({ id: 'ImageGenerationRequest', description: 'Images from a text.' })

const editFields = {
  ...generationFields,
  prompt: z.string().max(maxPrompt).meta({
    description: 'What to create. An empty text asks for a variation of the image, for engines that need no prompt.',
  }),
  mask_mode: nullish(
    z.enum(['alpha', 'luma']),
    'Which area of the mask is created anew. `alpha`: the transparent one. `luma`: the white one. Default: `alpha`.',
  ),
  input_fidelity: nullish(z.enum(['low', 'high']), 'Accepted for compatibility; has no effect. Use `strength`.'),
  strength: nullish(
    z.number().min(0).max(1),
    'How far the output may differ from the image; 0 keeps it. Default: 0.8, with a mask 1.',
  ),
}
export const ImageEditRequest = z
  .object({
    ...editFields,
    image: nullish(
      z.union([ImageInput, z.array(ImageInput).min(1)]),
      `The image to edit: JPEG, PNG, WebP, GIF or AVIF, 10 MB at most. Some engines take several, ${maxSources} at most.`,
    ),
    images: nullish(z.array(ImageInput).min(1).max(maxSources), 'The same as `image`.'),
    mask: nullish(ImageInput, 'Mask: a PNG of the size of the image. Default: the whole image is edited.'),
  })
  .superRefine(sameSize)
  .superRefine(formatFits)
  .superRefine(({ image, images }, ctx) => {
    if (image == null && images == null)
      ctx.addIssue({ code: 'invalid_type', expected: 'nonoptional', path: ['image'], input: undefined })
    // A limit inside the union would be reported as a value of the wrong type.
    if (Array.isArray(image) && image.length > maxSources)
      ctx.addIssue({ code: 'too_big', origin: 'array', maximum: maxSources, path: ['image'], input: image })
  })
  .meta({ id: 'ImageEditRequest', description: 'An image to edit.' })

const File = z.file().meta({ description: 'JPEG, PNG, WebP, GIF or AVIF, 10 MB at most.' })
/** The same request as a form. Images that are not sent as files are named as in JSON. */
export const ImageEditForm = namedObject('ImageEditForm', 'An image to edit, as a form.', {
  ...editFields,
  image: z
    .union([File, z.array(File).max(maxSources)])
    .meta({ description: 'The image to edit. Accepted as `image[]` too.' }),
  mask: optional(File, 'Mask: a PNG of the size of the image. Default: the whole image is edited.'),
})

/** A request for variations: an edit without a prompt. Fields of edits that OpenAI's route does not have work too. */
export const ImageVariationRequest = namedObject('ImageVariationRequest', 'An image of which to create variations.', {
  ...ImageEditRequest.shape,
  prompt: nullish(editFields.prompt, 'Not needed. What to create, if it is sent.'),
})
export const ImageVariationForm = namedObject(
  'ImageVariationForm',
  'An image of which to create variations, as a form.',
  { ...ImageEditForm.shape, prompt: ImageVariationRequest.shape.prompt },
)

/** The request of each task, by what an engine does for it. */
export const imageRequests = {
  'create-image': ImageGenerationRequest,
  'edit-image': ImageEditRequest,
} as const satisfies Partial<Record<Operation, z.ZodType>>

/** A validated request of either task. */
export type ImageRequest = z.output<typeof ImageGenerationRequest> & Partial<z.output<typeof ImageEditRequest>>

/**
 * Whether the answer has the bytes in base64. OpenAI's own models have no other form, so clients that know the name of one
 * do not ask for it and read nothing else.
 */
export const isInBase64 = ({
  model,
  response_format: form,
}: {
  model?: unknown
  response_format?: unknown
}): boolean => (form == null ? /^(openai\/)?(chat)?gpt-image/.test(String(model)) : form !== 'url')

/** The created images: the answer of the routes and the result of a job. */
export const ImagesResponse = namedObject('ImagesResponse', 'Images that were created.', {
  created: integer('Unix seconds.'),
  data: objects('The images in the form of OpenAI.', {
    url: optionalString('Where to read the image, with `response_format: "url"`.'),
    b64_json: optionalString('The bytes of the image in base64, with `response_format: "b64_json"`.'),
    revised_prompt: optionalString('The prompt that the engine used, if it is another one.'),
    seed: integer('Seed of the request. The same seed and `n` give the same images.'),
  }),
  images: array(
    'The same images with their sizes.',
    GeneratedFile.omit({ duration: true, fps: true, num_frames: true }),
  ),
  output_format: oneOf('Format of the files.', ['png', 'jpeg', 'webp']),
  size: string('`<width>x<height>` in pixels.'),
  seed_used: integer('Seed of the first image.'),
  timings: object('How long it took.', { inference: number('Seconds that the engine worked.') }),
  usage: object('The images, and token counts: engines for images count none, so those are 0.', {
    images: integer('Images created.'),
    input_tokens: integer('Tokens of the request.'),
    output_tokens: integer('Tokens of the images.'),
    total_tokens: integer('Sum of both.'),
    input_tokens_details: object('Details of the request tokens.', {
      text_tokens: integer('Tokens of the prompt.'),
      image_tokens: integer('Tokens of the input images.'),
    }),
  }),
})
