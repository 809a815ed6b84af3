import { type ImageTask, operationOf } from '../../schemas/task.ts'
import type { ValuePath } from '../../value-path.ts'
import { fillInputs } from '../generation/media.ts'
import { imageMetering } from '../generation/metering.ts'
import { slugTask } from '../generation/slug-task.ts'
import { isRepeatableSample } from '../sampling.ts'
import type { GenerationTaskRecord } from '../task.ts'
import { sampleImage } from '../task-test.ts'
import { ImagesResponse, imageRequests } from './image-request.ts'
import { type ImageResult, imageResultOf, linkedImages } from './image-result.ts'
import { engineTaskOf, imageRequestOf, prepareImage } from './prepare-image.ts'

/** Whether a value at this path names an image, such as `image`, `images[0]`, `mask` or `images[0].image_url`. */
function isMediaPath(path: ValuePath): boolean {
  const [first] = path
  if (path.length === 1) return first === 'image' || first === 'mask'
  if (path.length === 2 && typeof path[1] === 'number') return first === 'image' || first === 'images'
  if (path.at(-1) === 'image_url') return first === 'image' || first === 'images' || first === 'mask'
  return path.at(-1) === 'url' && (path.at(-2) === 'image' || path.at(-2) === 'mask')
}

type Differences = Pick<
  GenerationTaskRecord,
  'title' | 'aliases' | 'description' | 'path' | 'features' | 'form' | 'sample'
>

function openAiImageTask(id: ImageTask, differences: Differences): GenerationTaskRecord {
  const prepare: GenerationTaskRecord['prepare'] = (request, model, drawSeed) =>
    prepareImage(id, request, model, drawSeed)
  return {
    id,
    ...differences,
    family: 'image',
    runner: 'generation',
    category: 'image',
    request: imageRequests[operationOf(id)],
    otherFields: {},
    modelFaults: () => [],
    result: ImagesResponse,
    metering: imageMetering,
    takesFiles: true,
    isMediaPath,
    files: { shown: linkedImages, ids: ({ images }: ImageResult) => images.map(file => file.file_id) },
    isRepeatable: isRepeatableSample,
    fill: (inputs, context) => fillInputs(prepare, inputs, context),
    requestAgain: imageRequestOf,
    prepare,
    engineTask: ({ mask }) => engineTaskOf(id, { masked: mask !== null }),
    resultOf: imageResultOf,
  }
}

/** The records of the tasks that create images. */
export const imageTaskRecords: readonly GenerationTaskRecord[] = [
  openAiImageTask('std/image-generation', {
    title: 'image generation',
    aliases: ['std/image-generations', 'std/images-generations'],
    description: 'Generate images from a prompt. Returns image files.',
    path: '/std/v1/images/generations',
    features: ['transparent_background'],
    sample: { prompt: sampleImage, size: '512x512' },
    form: { panel: 'fields', hidden: ['response_format'], first: ['seed', 'n', 'prompt', 'size'] },
  }),
  openAiImageTask('std/image-edit', {
    title: 'image editing',
    aliases: ['std/image-edits', 'std/images-edits'],
    description: 'Edit an image by a prompt. Returns image files.',
    path: '/std/v1/images/edits',
    features: ['variations', 'transparent_background'],
    form: { panel: 'fields', hidden: ['response_format', 'images'], first: ['seed', 'n', 'prompt', 'size'] },
  }),
  slugTask('slug/text-to-image', {
    title: 'text to image',
    description: 'Generate images from a prompt. Returns image files.',
    sample: { prompt: sampleImage, width: 512, height: 512, preset: 'fast_draft' },
  }),
  slugTask('slug/image-to-image', {
    title: 'image to image',
    description: 'Change an image by a prompt. Returns image files.',
  }),
  slugTask('slug/inpainting', {
    title: 'inpainting',
    description: 'Replace the masked part of an image by a prompt. Returns image files.',
  }),
]
