import { presentMembers } from '../../members.ts'
import { type GenerationTask, isVideoTask, operationOf } from '../../schemas/task.ts'
import type { ValuePath } from '../../value-path.ts'
import type { PredictionInput } from '../prediction.ts'
import type { GenerationInputs } from '../protocols/generation-call.ts'
import { isSeeded } from '../sampling.ts'
import type { GenerationTaskRecord } from '../task.ts'
import { sampleImage } from '../task-test.ts'
import { withoutDefaulted } from './input-defaults.ts'
import { expansionFaults, fillInputs } from './media.ts'
import { imageMetering, videoMetering } from './metering.ts'
import { prepareGeneration, sizeFaults } from './prepare.ts'
import { generationRequests, otherNames } from './request.ts'
import { GeneratedImages, GeneratedVideo, type GenerationResult, generationResult, resultWithUrls } from './result.ts'

const mediaField = /^(image|mask|video|audio)(_url)?$/

/** Whether a value at this path names media: the path is a media field, or the `url` of an object in one. */
const isMediaPath = (path: ValuePath): boolean =>
  path.length === 1 ? mediaField.test(String(path[0])) : path.at(-1) === 'url' && mediaField.test(String(path.at(-2)))

const mediaKinds = ['image', 'mask', 'video', 'audio'] as const

/** Returns the input of a prediction as a request: only the number of images has another name. */
const asGeneration = ({ num_outputs, ...input }: PredictionInput): Record<string, unknown> =>
  presentMembers({ ...input, num_images: input.num_images ?? num_outputs })

/** Returns the addresses of the files of a result. */
function addresses(result: object): unknown {
  const { images, video } = result as { images?: { url: string }[]; video?: { url: string } }
  return images ? images.map(({ url }) => url) : (video?.url ?? null)
}

/** Returns the record of a task under /slug: its stored inputs are GenerationInputs, its result is files. */
export function slugTask(
  id: GenerationTask,
  differences: Pick<GenerationTaskRecord, 'title' | 'description' | 'sample'>,
): GenerationTaskRecord {
  const makes = isVideoTask(id) ? 'video' : 'images'
  const prepare: GenerationTaskRecord['prepare'] = (request, model, drawSeed) =>
    prepareGeneration(id, request, model, drawSeed)
  const fields = Object.keys(generationRequests[operationOf(id)].shape)
  const kept = new Set([...fields, 'image', 'mask', 'video', 'audio'])
  return {
    id,
    ...differences,
    features: [],
    form: { panel: 'fields', hidden: [], first: ['seed', 'prompt'] },
    family: makes === 'images' ? 'image' : 'video',
    runner: 'generation',
    aliases: [],
    category: makes === 'images' ? 'image' : 'video',
    request: generationRequests[operationOf(id)],
    otherFields: Object.fromEntries(fields.flatMap(field => (otherNames[field] ?? []).map(other => [other, field]))),
    modelFaults: (inputs, model) => [...sizeFaults(id, inputs, model), ...expansionFaults(inputs)],
    result: makes === 'images' ? GeneratedImages : GeneratedVideo,
    metering: makes === 'images' ? imageMetering : videoMetering,
    takesFiles: true,
    isMediaPath,
    files: {
      shown: resultWithUrls,
      ids: ({ images = [], video }: GenerationResult) =>
        [...images, ...(video ? [video] : [])].map(file => file.file_id),
    },
    isRepeatable: isSeeded,
    prediction: {
      media: mediaKinds.filter(kind => fields.includes(`${kind}_url`)),
      request: asGeneration,
      output: addresses,
    },
    fill: (inputs, context) => fillInputs(prepare, inputs, context),
    requestAgain({ extra, prompt_expansion, ...stored }: GenerationInputs) {
      const sent = Object.entries(withoutDefaulted(stored)).filter(
        ([name, value]) => kept.has(name) && value !== null && value !== '',
      )
      return { ...Object.fromEntries(sent), ...(prompt_expansion ? { enable_prompt_expansion: true } : {}), ...extra }
    },
    prepare,
    engineTask: () => id,
    resultOf: (inputs, completed, files, { inference }) => generationResult(makes, inputs, completed, files, inference),
  }
}

/** The records of the tasks that make videos. */
export const videoTasks: readonly GenerationTaskRecord[] = [
  slugTask('slug/text-to-video', {
    title: 'text to video',
    description: 'Generate a video from a prompt. Takes minutes; returns a video file.',
    sample: { prompt: sampleImage, preset: 'fast_draft' },
  }),
  slugTask('slug/image-to-video', {
    title: 'image to video',
    description: 'Animate an image by a prompt. Takes minutes; returns a video file.',
  }),
  slugTask('slug/speech-to-video', {
    title: 'speech to video',
    description: 'Animate an image to speech. Takes minutes; returns a video file.',
  }),
  slugTask('slug/video-interpolation', {
    title: 'video interpolation',
    description: 'Add frames between those of a video. Returns a video file.',
  }),
]
