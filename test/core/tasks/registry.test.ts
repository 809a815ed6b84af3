import { expect, test } from 'vitest'
import { tasks } from '../../../core/schemas/task.ts'
import { taskNamed, taskRecord, taskRecords } from '../../../core/tasks/registry.ts'

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
  ['std/image-edit', ['image'], true],
  ['std/image-edit', ['images', 0, 'image_url'], true],
  ['std/image-edit', ['image', 'url'], true],
  ['slug/image-to-video', ['image_url'], true],
  ['slug/image-to-video', ['prompt'], false],
  ['slug/speech-to-video', ['audio_url'], true],
] as const)('%s: an address of a file belongs at %j: %s', (task, path, does) =>
  expect(taskRecord(task).isMediaPath(path)).toBe(does),
)

test.each([
  ['std/audio-speech', 'characters', { inputTokens: 100, outputTokens: 0 }, 300],
  ['std/chat-completion', 'tokens', { inputTokens: 100, outputTokens: 10 }, 350],
  ['slug/text-to-image', 'nothing', { inputTokens: 100, outputTokens: 10 }, 0],
] as const)('%s is metered in %s', (task, unit, usage, cost) => {
  const { metering } = taskRecord(task)
  expect(metering.unit).toBe(unit)
  expect(metering.cost({ input_per_million_tokens: 3, output_per_million_tokens: 5 }, usage)).toBe(cost)
})
