import { createHash } from 'node:crypto'
import { modelAllowed } from '../../core/accounts/model-allowed.ts'
import { Failure } from '../../core/failure.ts'
import type { Model } from '../../core/models/model.ts'
import { didYouMean, nearestModels } from '../../core/nearest.ts'
import type { Task } from '../../core/schemas/task.ts'
import type { Call } from '../call.ts'
import type { Owners } from '../owners.ts'

type Inputs = Readonly<Record<string, unknown>>

/** The owner in the names of models whose id has none: Replicate's clients require `owner/name`. */
export const localOwner = 'local'

/** The only version of a model: 64 hexadecimal digits, as Replicate's versions. */
export const versionOf = ({ id }: Pick<Model, 'id'>): string =>
  createHash('sha256').update(`infer model ${id}`).digest('hex')

/** Returns `owner/name` of a model. Further parts of an id stay in the name. */
export const replicateName = ({ id }: Pick<Model, 'id'>): string => (id.includes('/') ? id : `${localOwner}/${id}`)

export const visibleModels = (call: Call, { registry }: Pick<Owners, 'registry'>): Model[] =>
  registry.all().filter(model => model.enabled && modelAllowed(call.caller.token.models, model.id))

/** Finds a model by `owner/name`, by its id, or by a version of it. Throws Failure `model_not_found`. */
export function findReplicateModel(name: string, call: Call, owners: Pick<Owners, 'registry'>): Model {
  const models = visibleModels(call, owners)
  // A version may come with the name of its model before it.
  const [plain, version] = name.split(':') as [string, string | undefined]
  const found = models.find(
    model => model.id === name || replicateName(model) === plain || versionOf(model) === (version ?? name),
  )
  if (found) return found
  const meant = nearestModels(plain, models.map(replicateName))
  throw new Failure(
    'model_not_found',
    `There is no model or version '${name.slice(0, 128)}' here.${didYouMean(meant)} GET /replicate/v1/models lists the existing ones.`,
    { param: 'version' },
  )
}

const names = {
  mask: ['mask', 'mask_url', 'mask_image_url'],
  image: ['image', 'image_url', 'input_image', 'input_image_url', 'image_urls'],
  video: ['video', 'video_url', 'input_video_url'],
  audio: ['audio', 'audio_url', 'input_audio_url'],
} as const

/**
 * Returns the task of the model that these inputs are for: of several, the one whose media they have. Replicate's models
 * have one task each, and its requests do not name it.
 */
export function taskFor({ id, tasks }: Pick<Model, 'id' | 'tasks'>, input: Inputs): Task {
  const has = (kind: keyof typeof names) => names[kind].some(name => input[name] != null)
  const wanted: Task[] = [
    ...(has('mask') ? (['slug/inpainting'] as const) : []),
    ...(has('image') && has('audio') ? (['slug/speech-to-video'] as const) : []),
    ...(has('image') ? (['slug/image-to-image', 'slug/image-to-video'] as const) : []),
    ...(has('video') ? (['slug/video-interpolation'] as const) : []),
    ...(has('audio') ? (['std/audio-transcription'] as const) : []),
    'slug/text-to-image',
    'slug/text-to-video',
    'std/chat-completion',
    'std/audio-speech',
    'std/embeddings',
    'std/audio-transcription',
    'slug/image-to-image',
    'slug/image-to-video',
    'slug/inpainting',
    'slug/speech-to-video',
    'slug/video-interpolation',
  ]
  const task = wanted.find(one => tasks.includes(one))
  if (task) return task
  throw new Failure(
    'unsupported_task',
    `The model '${id}' has no task that predictions run. Send the request to its own endpoint.`,
  )
}

const first = (input: Inputs, ...keys: string[]): unknown => keys.map(key => input[key]).find(value => value != null)
const defined = (members: Record<string, unknown>) =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => value != null))

/** Returns the inputs of the task under the names of its own endpoint. Inputs of images and videos stay as they are. */
export function taskInputs(task: Task, input: Inputs): Record<string, unknown> {
  if (task === 'std/chat-completion') {
    const { prompt, system_prompt, messages } = input
    return defined({
      messages: messages ?? [
        ...(typeof system_prompt === 'string' && system_prompt !== ''
          ? [{ role: 'system', content: system_prompt }]
          : []),
        { role: 'user', content: prompt ?? '' },
      ],
      max_completion_tokens: first(input, 'max_tokens', 'max_new_tokens', 'max_completion_tokens'),
      temperature: input.temperature,
      top_p: input.top_p,
      top_k: input.top_k,
      seed: input.seed,
      presence_penalty: input.presence_penalty,
      frequency_penalty: input.frequency_penalty,
      stop: stopsOf(first(input, 'stop', 'stop_sequences')),
    })
  }
  if (task === 'std/embeddings') return defined({ input: first(input, 'input', 'texts', 'text', 'prompt') })
  if (task === 'std/audio-speech')
    return defined({
      input: first(input, 'text', 'input', 'prompt'),
      voice: first(input, 'voice', 'speaker'),
      speed: input.speed,
    })
  if (task === 'std/audio-transcription')
    return defined({
      url: first(input, 'audio', 'audio_file', 'file', 'url'),
      language: input.language,
      prompt: input.prompt,
    })
  const { num_outputs, ...rest } = input
  return defined({ ...rest, num_images: first(input, 'num_images') ?? num_outputs })
}

const stopsOf = (stop: unknown): unknown => (typeof stop === 'string' ? stop.split(',').filter(Boolean) : stop)
