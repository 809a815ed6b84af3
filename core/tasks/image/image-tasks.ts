import { type ImageTask, operationOf } from '../../schemas/task.ts'
import { fillInputs } from '../generation/fill-inputs.ts'
import { imageMetering } from '../generation/metering.ts'
import { slugTask } from '../generation/slug-task.ts'
import { isRepeatableSample } from '../sampling.ts'
import type { GenerationTaskRecord, Path } from '../task.ts'
import { ImagesResponse, imageRequests } from './image-request.ts'
import { type ImageResult, imageResultOf, linkedImages } from './image-result.ts'
import { engineTaskOf, imageRequestOf, prepareImage } from './prepare-image.ts'

/** Whether a value at this path names an image, such as `image`, `images[0]`, `mask` or `images[0].image_url`. */
function isMediaPath(path: Path): boolean {
  const [first] = path
  if (path.length === 1) return first === 'image' || first === 'mask'
  if (path.length === 2 && typeof path[1] === 'number') return first === 'image' || first === 'images'
  if (path.at(-1) === 'image_url') return first === 'image' || first === 'images' || first === 'mask'
  return path.at(-1) === 'url' && (path.at(-2) === 'image' || path.at(-2) === 'mask')
}

function openAiImageTask(id: ImageTask, title: string, aliases: string[]): GenerationTaskRecord {
  const prepare: GenerationTaskRecord['prepare'] = (request, model, drawSeed) =>
    prepareImage(id, request, model, drawSeed)
  return {
    id,
    title,
    family: 'image',
    runner: 'generation',
    aliases,
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
export const imageTasks: readonly GenerationTaskRecord[] = [
  openAiImageTask('std/image-generation', 'image generation', ['std/image-generations', 'std/images-generations']),
  openAiImageTask('std/image-edit', 'image editing', ['std/image-edits', 'std/images-edits']),
  slugTask('slug/text-to-image', 'text to image', 'images'),
  slugTask('slug/image-to-image', 'image to image', 'images'),
  slugTask('slug/inpainting', 'inpainting', 'images'),
]
