import { expect, test } from 'vitest'
import type { Task } from '../../../core/schemas/task.ts'
import { predictionTask } from '../../../core/tasks/prediction-task.ts'

const images: Task[] = ['slug/text-to-image', 'slug/image-to-image', 'slug/inpainting']
const videos: Task[] = ['slug/text-to-video', 'slug/image-to-video', 'slug/speech-to-video', 'slug/video-interpolation']

test.each<[tasks: Task[], input: object, task: Task]>([
  [images, { prompt: 'a' }, 'slug/text-to-image'],
  [images, { prompt: 'a', image: 'i' }, 'slug/image-to-image'],
  [images, { prompt: 'a', image: null }, 'slug/text-to-image'],
  [images, { prompt: 'a', input_image: 'i', mask: 'm' }, 'slug/inpainting'],
  [images, { prompt: 'a', mask: 'm' }, 'slug/inpainting'],
  [videos, { prompt: 'a' }, 'slug/text-to-video'],
  [videos, { image: 'i' }, 'slug/image-to-video'],
  [videos, { image: 'i', audio: 'a' }, 'slug/speech-to-video'],
  [videos, { video: 'v' }, 'slug/video-interpolation'],
  [['slug/inpainting'], { prompt: 'a' }, 'slug/inpainting'],
  [['std/audio-translation', 'std/audio-transcription'], { audio_file: 'a' }, 'std/audio-transcription'],
  [['std/image-generation', 'slug/text-to-image'], { prompt: 'a' }, 'slug/text-to-image'],
  [['std/completion', 'std/chat-completion'], { prompt: 'a' }, 'std/chat-completion'],
])('of %j the input %j is for %s', (tasks, input, task) => {
  expect(predictionTask({ id: 'm', tasks }, { ...input }).id).toBe(task)
})

test('a model without such a task is refused', () => {
  expect(() => predictionTask({ id: 'm', tasks: ['std/rerank'] }, {})).toThrow(
    expect.objectContaining({ code: 'unsupported_task' }),
  )
})

const chat: Task = 'std/chat-completion'
test.each<[task: Task, input: object, request: object]>([
  [chat, { prompt: 'Hi' }, { messages: [{ role: 'user', content: 'Hi' }] }],
  [
    chat,
    { prompt: 'Hi', system_prompt: 'Be short.', max_new_tokens: 5, stop_sequences: 'a,b', seed: null },
    {
      messages: [
        { role: 'system', content: 'Be short.' },
        { role: 'user', content: 'Hi' },
      ],
      max_completion_tokens: 5,
      stop: ['a', 'b'],
    },
  ],
  ['std/embeddings', { texts: ['a', 'b'] }, { input: ['a', 'b'] }],
  ['std/audio-speech', { text: 'Hi', speaker: 'x' }, { input: 'Hi', voice: 'x' }],
  ['std/audio-transcription', { audio: 'u', language: 'de' }, { url: 'u', language: 'de' }],
  ['slug/text-to-image', { prompt: 'a', num_outputs: 2, seed: null }, { prompt: 'a', num_images: 2 }],
])('%s: %j becomes %j', (task, input, request) => {
  expect(predictionTask({ id: 'm', tasks: [task] }, { ...input }).prediction.request({ ...input })).toEqual(request)
})

test.each<[task: Task, result: object, output: unknown]>([
  [chat, { choices: [{ message: { content: 'Hi' } }] }, ['Hi']],
  [chat, { choices: [{ message: { content: null } }] }, ['']],
  ['std/embeddings', { data: [{ embedding: [1] }, { embedding: [2] }] }, [[1], [2]]],
  ['std/audio-speech', { audio_url: 'u' }, 'u'],
  ['std/audio-transcription', { text: 'a' }, { text: 'a' }],
  ['slug/text-to-image', { images: [{ url: 'a' }, { url: 'b' }] }, ['a', 'b']],
  ['slug/text-to-video', { video: { url: 'v' } }, 'v'],
])('%s: the output of %j is %j', (task, result, output) => {
  expect(predictionTask({ id: 'm', tasks: [task] }, {}).prediction.output(result)).toEqual(output)
})
