import { expect, test } from 'vitest'
import { type Task, tasks } from '../../../core/schemas/task.ts'
import type { EstimateInput } from '../../../core/tasks/metering.ts'
import { taskNamed, taskRecord, taskRecords } from '../../../core/tasks/registry.ts'
import type { Measure, Usage } from '../../../core/usage.ts'

test('every task has one record, in the order of the ids', () => {
  expect(taskRecords.map(({ id }) => id).toSorted()).toEqual([...tasks].toSorted())
  for (const id of tasks) expect(taskRecord(id).id).toBe(id)
})

test('no name belongs to two tasks', () => {
  const names = taskRecords.flatMap(({ id, aliases }) => [id, ...aliases])
  expect(new Set(names).size).toBe(names.length)
})

test.each([
  ['std/chat', 'std/chat-completion'],
  ['std/images-edits', 'std/image-edit'],
  ['slug/inpainting', 'slug/inpainting'],
  ['std/paint', undefined],
])('the task named %s is %s', (name, id) => expect(taskNamed(name)?.id).toBe(id))

const seeded = { seed: 7 }
test.each([
  ['std/embeddings', {}, true],
  ['std/rerank', { temperature: 1 }, true],
  ['std/chat-completion', {}, false],
  ['std/chat-completion', { temperature: 0 }, true],
  ['std/chat-completion', seeded, true],
  ['std/chat-completion', { ...seeded, temperature: 0.5 }, false],
  ['std/audio-transcription', {}, true],
  ['std/audio-transcription', { temperature: '0.2' }, false],
  ['slug/text-to-image', {}, false],
  ['slug/text-to-image', { ...seeded, temperature: 0.5 }, true],
  ['std/image-generation', seeded, true],
] as const)('%s with %j: whether two runs can share a result is %s', (task, inputs, can) =>
  expect(taskRecord(task).isRepeatable(inputs)).toBe(can),
)

test.each([
  ['std/chat-completion', ['messages', 0, 'content', 1, 'image_url', 'url'], true],
  ['std/chat-completion', ['messages', 0, 'content', 1, 'text'], false],
  ['std/audio-transcription', ['file'], true],
  ['std/audio-transcription', ['prompt'], false],
  ['std/audio-speech', ['input'], false],
  ['std/audio-speech', ['reference_audio'], true],
  ['std/audio-transcription', ['known_speaker_references', 0], true],
  ['std/image-edit', ['image', 1], true],
  ['std/image-edit', ['prompt', 1], false],
  ['std/image-edit', ['image'], true],
  ['std/image-edit', ['images', 0, 'image_url'], true],
  ['std/image-edit', ['image', 'url'], true],
  ['slug/image-to-video', ['image_url'], true],
  ['slug/image-to-video', ['prompt'], false],
  ['slug/speech-to-video', ['audio_url'], true],
] as const)('%s: an address of a file belongs at %j: %s', (task, path, does) =>
  expect(taskRecord(task).isMediaPath(path)).toBe(does),
)

test.each<[Task, readonly Measure[]]>([
  ['std/audio-speech', ['characters', 'audioMs']],
  ['std/audio-transcription', ['audioMs', 'inputTokens', 'outputTokens']],
  ['std/chat-completion', ['inputTokens', 'cachedTokens', 'outputTokens', 'reasoningTokens']],
  ['std/embeddings', ['inputTokens']],
  ['std/rerank', ['inputTokens', 'documents']],
  ['std/score', ['inputTokens', 'documents']],
  ['slug/text-to-image', ['images']],
  ['std/image-edit', ['images']],
  ['slug/image-to-video', ['videoMs']],
])('%s is metered in %j', (task, measures) => expect(taskRecord(task).metering.measures).toEqual(measures))

const frames = { num_images: 1, num_frames: 81, fps: 16, width: 832, height: 480 }
test.each<[Task, Partial<EstimateInput>, Partial<Usage>]>([
  ['std/chat-completion', { inputs: { max_tokens: 10, n: 3 } }, { inputTokens: 100, outputTokens: 30 }],
  ['std/chat-completion', { inputs: { max_completion_tokens: 5, max_tokens: 10 } }, { outputTokens: 5 }],
  ['std/chat-completion', { contextLength: 64 }, { inputTokens: 64, outputTokens: 64 }],
  ['std/chat-completion', { inputs: { max_tokens: 'many' } }, { outputTokens: 32_768 }],
  ['std/completion', { inputs: { prompt: ['a', 'b'], max_tokens: 7, best_of: 2 } }, { outputTokens: 28 }],
  ['std/completion', { inputs: { prompt: [1, 2, 3], max_tokens: 7 } }, { outputTokens: 7 }],
  ['std/embeddings', {}, { inputTokens: 100, outputTokens: 0 }],
  ['std/rerank', { inputs: { documents: ['a', 'b', 'c'] } }, { documents: 3 }],
  ['std/score', { inputs: { queries: 'a', items: ['a', 'b'] } }, { documents: 2 }],
  ['std/audio-speech', { inputs: { input: 'Hello' } }, { characters: 5, audioMs: 2_000, inputTokens: 0 }],
  ['std/audio-transcription', { audioBytes: 1_500 }, { audioMs: 1_500 }],
  ['slug/text-to-image', { inputs: { ...frames, num_images: 4 } }, { images: 4 }],
  ['slug/text-to-video', { inputs: frames }, { videoMs: 5_063 }],
])('%s with %j can use at most %j', (task, asked, usage) => {
  const estimate = taskRecord(task).metering.estimate({ inputs: {}, length: 100, contextLength: null, ...asked })
  expect(estimate.usage).toMatchObject({ ...usage, gpuMs: 600_000 })
})
