import { expect, test } from 'vitest'
import {
  type GenerationModel,
  type GivenMedia,
  generationTarget,
  isVideo,
  modelNames,
  namesModel,
  possibleTargets,
} from '../../../cli/generation/target.ts'
import { type GenerationTask, generationTasks } from '../../../core/schemas/task.ts'

const short = (task: string) => task.slice('slug/'.length)
const demo: GenerationModel = {
  model_id: 'infer/demo',
  tasks: [...generationTasks],
  slugs: Object.fromEntries(generationTasks.map(task => [task, `demo/${short(task)}`])),
}
const wan: GenerationModel = {
  model_id: 'wan',
  tasks: ['slug/text-to-video'],
  slugs: { 'slug/text-to-video': 'wan/v2.2/fast' },
}
const both: GenerationModel = { model_id: 'both', tasks: ['std/chat-completion', 'slug/text-to-image'], slugs: {} }
const chat: GenerationModel = { model_id: 'chat', tasks: ['std/chat-completion'], slugs: {} }
const models = [chat, demo, wan, both]

const nothing: GivenMedia = { image: false, mask: false, video: false, audio: false }
const target = (name: string, given: Partial<GivenMedia> = {}, more: Parameters<typeof generationTarget>[3] = {}) =>
  generationTarget(models, name, { ...nothing, ...given }, more)

test.each<[name: string, given: Partial<GivenMedia>, modelId: string, task: GenerationTask]>([
  ['demo/text-to-image', {}, 'infer/demo', 'slug/text-to-image'],
  ['infer/demo/text-to-video', {}, 'infer/demo', 'slug/text-to-video'],
  ['demo/image-to-video', { image: true }, 'infer/demo', 'slug/image-to-video'],
  ['demo', { image: true, mask: true }, 'infer/demo', 'slug/inpainting'],
  ['infer/demo', { image: true, audio: true }, 'infer/demo', 'slug/speech-to-video'],
  ['infer/demo', { video: true }, 'infer/demo', 'slug/video-interpolation'],
  ['wan', {}, 'wan', 'slug/text-to-video'],
  ['wan/v2.2/fast', {}, 'wan', 'slug/text-to-video'],
  ['wan/v2.2/fast/text-to-video', {}, 'wan', 'slug/text-to-video'],
  ['wan/text-to-video', {}, 'wan', 'slug/text-to-video'],
  ['both', {}, 'both', 'slug/text-to-image'],
])('%s with %j', (name, given, modelId, task) => expect(target(name, given)).toMatchObject({ modelId, task }))

test.each(['chat', 'nothing', 'demo/', 'wan/v2.2', ''])('%j has no generation task', name =>
  expect(target(name)).toBeUndefined(),
)

test('a command for videos and a requested task narrow the choice', () => {
  expect(target('demo', {}, { only: isVideo })?.task).toBe('slug/text-to-video')
  expect(target('demo', { image: true }, { only: isVideo })?.task).toBe('slug/image-to-video')
  expect(target('demo', { image: true }, { requested: 'slug/image-to-image' })?.task).toBe('slug/image-to-image')
})

test.each<[name: string, given: Partial<GivenMedia>, more: Parameters<typeof generationTarget>[3], said: string]>([
  ['demo', {}, {}, "'demo' has several tasks. Choose one with --task: text-to-image, image-to-image,"],
  ['demo', { image: true }, {}, 'Choose one with --task'],
  ['demo/inpainting', { image: true }, {}, 'Inpainting needs --mask <file>.'],
  ['demo/text-to-image', { audio: true }, {}, 'Text-to-image takes no --audio.'],
  ['demo/text-to-image', {}, { requested: 'slug/inpainting' }, 'does not do inpainting: its tasks are text-to-image.'],
  ['demo/text-to-image', {}, { only: isVideo }, 'does not make that'],
  ['both', {}, { only: isVideo }, 'does not make that: its tasks are text-to-image.'],
])('%s with %j is refused', (name, given, more, said) => expect(() => target(name, given, more)).toThrow(said))

test('a model that is switched off is reported as disabled', () => {
  expect(() => generationTarget([{ ...wan, enabled: false }], 'wan', nothing)).toThrow("The model 'wan' is disabled.")
})

test('for videos no name is offered that generates images', () => {
  expect(modelNames(demo, isVideo)).toEqual([
    'infer/demo',
    ...generationTasks.filter(isVideo).map(task => `demo/${short(task)}`),
  ])
  expect(modelNames(both, isVideo)).toEqual([])
  expect(() => target('demo/text-to-image', {}, { only: isVideo })).toThrow(
    'Give one of infer/demo, demo/text-to-video',
  )
})

test('a chat model has no names to offer', () => {
  expect(models.flatMap(model => modelNames(model))).toEqual([
    'infer/demo',
    ...generationTasks.map(task => `demo/${short(task)}`),
    'wan',
    'wan/v2.2/fast',
    'both',
  ])
})

test.each([
  ['wan', true],
  ['wan/v2.2/fast', true],
  ['wann', true],
  ['nobody/nothing', true],
  ['A', false],
  ['A cat by the wan river', false],
])("the first word '%s' names a model: %s", (word, isName) => {
  expect(namesModel(word, models)).toBe(isName)
})

test('without a name the first model that makes a video of the given media is taken', () => {
  const many: GenerationModel[] = [
    { model_id: 'off', tasks: ['slug/text-to-video'], enabled: false },
    { model_id: 'chat', tasks: ['std/chat-completion'] },
    { model_id: 'both', tasks: ['slug/image-to-video', 'slug/text-to-video'] },
    { model_id: 'late', tasks: ['slug/image-to-video'] },
  ]
  const found = (given: Partial<GivenMedia>) =>
    possibleTargets(many, { ...nothing, ...given }, { only: isVideo }).map(({ modelId, task }) => [modelId, task])
  expect(found({})).toEqual([['both', 'slug/text-to-video']])
  expect(found({ image: true })).toEqual([
    ['both', 'slug/image-to-video'],
    ['late', 'slug/image-to-video'],
  ])
  expect(found({ video: true, audio: true })).toEqual([])
})
