import { Failure } from '../failure.ts'
import type { Model } from '../models/model.ts'
import type { Task } from '../schemas/task.ts'

type Inputs = Readonly<Record<string, unknown>>

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
export function predictionTask({ id, tasks }: Pick<Model, 'id' | 'tasks'>, input: Inputs): Task {
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
export function predictionInputs(task: Task, input: Inputs): Record<string, unknown> {
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

/** Returns the output of an image or video prediction: addresses. */
export function generatedOutput(result: object): unknown {
  const { images, video } = result as { images?: { url: string }[]; video?: { url: string } }
  return images ? images.map(({ url }) => url) : (video?.url ?? null)
}

/** Returns the output of another prediction: the text of a chat in a list, an address, vectors, or the result as it is. */
export function predictionOutput(task: Task, result: Record<string, unknown>): unknown {
  if (task === 'std/chat-completion')
    return [(result as { choices: { message: { content: string | null } }[] }).choices[0]?.message.content ?? '']
  if (task === 'std/audio-speech') return result.audio_url
  if (task === 'std/embeddings') return (result.data as { embedding: unknown }[]).map(({ embedding }) => embedding)
  return result
}
