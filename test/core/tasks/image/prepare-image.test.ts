import { expect, test } from 'vitest'
import { Failure } from '../../../../core/failure.ts'
import { type ImageTask, type Task, withImplied } from '../../../../core/schemas/task.ts'
import { byKind, fillMedia } from '../../../../core/tasks/generation/media.ts'
import { imageRequestOf, prepareImage } from '../../../../core/tasks/image/prepare-image.ts'

const model = { extra_params: ['scheduler', 'prompt'], resolutions: undefined }
const prepared = (task: ImageTask, body: object) => prepareImage(task, { prompt: 'a cat', ...body }, model, () => 5)
const inputsOf = (body: object = {}) => prepared('std/image-generation', body).inputs
const edited = (body: object) => prepared('std/image-edit', body)

test('with a prompt only every field has its default', () => {
  expect(prepared('std/image-generation', {})).toEqual({
    task: 'slug/text-to-image',
    inputs: {
      prompt: 'a cat',
      negative_prompt: null,
      seed: 5,
      width: 1024,
      height: 1024,
      num_images: 1,
      num_frames: 1,
      fps: 16,
      num_inference_steps: 30,
      guidance_scale: 5,
      strength: 0.8,
      output_format: 'png',
      image: null,
      mask: null,
      video: null,
      audio: null,
      extra: { prompt: 'a cat' },
    },
    media: [],
    sizeFromMedia: false,
    maskFits: false,
    lengthFromMedia: false,
    syncMode: false,
  })
})

test.each<[body: object, expected: object]>([
  [{}, { num_inference_steps: 4, guidance_scale: 1, width: 512, height: 512 }],
  [
    { quality: 'auto', size: 'auto' },
    { num_inference_steps: 4, width: 512 },
  ],
  [
    { quality: 'low', size: '768x512' },
    { num_inference_steps: 10, width: 768, height: 512 },
  ],
  [
    { steps: 7, guidance_scale: 3 },
    { num_inference_steps: 7, guidance_scale: 3 },
  ],
])('%j has the values of the model where the request sets none', (body, expected) => {
  const defaults = { num_inference_steps: 4, guidance_scale: 1, width: 512, height: 512 }
  const own = { ...model, extra_params: [], generation_defaults: defaults }
  expect(prepareImage('std/image-generation', { prompt: 'a cat', ...body }, own).inputs).toMatchObject(expected)
})

test.each<[body: object, expected: object]>([
  [{ size: '512x768' }, { width: 512, height: 768 }],
  [{ size: 'auto' }, { width: 1024, height: 1024 }],
  [{ size: '1000x72' }, { width: 1008, height: 80 }],
  [
    { width: 512, height: 768 },
    { width: 512, height: 768 },
  ],
  [{ width: 512 }, { width: 512, height: 1024 }],
  [
    { size: '512x768', width: 512 },
    { width: 512, height: 768 },
  ],
  [
    { height: 72, width: null },
    { width: 1024, height: 80 },
  ],
  [
    { size: 'auto', width: 512, height: 768 },
    { width: 512, height: 768 },
  ],
  [
    { size: '512x768', width: 512, height: 768 },
    { width: 512, height: 768 },
  ],
  [
    { size: null, n: null, seed: null },
    { width: 1024, num_images: 1, seed: 5 },
  ],
  [
    { n: 10, seed: 3, output_format: 'jpeg' },
    { num_images: 10, seed: 3, output_format: 'jpeg' },
  ],
  [{ output_compression: 60 }, { output_format: 'png' }],
  [
    { output_compression: 60, output_format: 'webp' },
    { output_format: 'webp', output_compression: 60 },
  ],
  [{ background: 'transparent' }, { background: 'transparent' }],
  [{ stream: true, partial_images: 2 }, { previews: 2 }],
  [{ quality: 'low' }, { num_inference_steps: 10 }],
  [{ quality: 'hd' }, { num_inference_steps: 50 }],
  [{ quality: 'low', steps: 7 }, { num_inference_steps: 7 }],
  [{ steps: 7, num_inference_steps: 8 }, { num_inference_steps: 8 }],
  [{ scheduler: 'euler', other: 1 }, { extra: { scheduler: 'euler', prompt: 'a cat' } }],
  [{ model: 'whatever', stream: true, response_format: 'b64_json', output_compression: 100 }, { num_images: 1 }],
])('%o is requested as %o', (body, expected) => expect(inputsOf(body)).toMatchObject(expected))

test.each<[body: object, task: string, media: object[]]>([
  [{ image: 'file-1' }, 'slug/image-to-image', [{ kind: 'image', field: 'image', value: 'file-1' }]],
  [{ image: ['file-1'] }, 'slug/image-to-image', [{ kind: 'image', field: 'image[0]', value: 'file-1' }]],
  [
    { images: [{ file_id: 'file-1' }] },
    'slug/image-to-image',
    [{ kind: 'image', field: 'images[0].file_id', value: 'file-1' }],
  ],
  [
    { image: { image_url: 'http://a' }, mask: { url: 'http://b' } },
    'slug/inpainting',
    [
      { kind: 'image', field: 'image.image_url', value: 'http://a' },
      { kind: 'mask', field: 'mask.url', value: 'http://b', alpha: true },
    ],
  ],
  [
    { image: 'file-1', mask: 'file-2', mask_mode: 'luma' },
    'slug/inpainting',
    [
      { kind: 'image', field: 'image', value: 'file-1' },
      { kind: 'mask', field: 'mask', value: 'file-2', alpha: false },
    ],
  ],
])('an edit of %o is %s', (body, task, media) => {
  const { task: asked, media: named, sizeFromMedia } = edited(body)
  expect([asked, named, sizeFromMedia]).toEqual([task, media, true])
})

const taken = { image: { id: 'file-1', width: 640, height: 480, durationMs: null } }
const mask = (width: number, height: number) => ({ ...taken, mask: { id: 'file-2', width, height, durationMs: null } })

test('the size of an edit is that of its image, unless one is given', () => {
  expect(fillMedia(edited({ image: 'a' }), taken)).toMatchObject({ width: 640, height: 480, image: 'file-1' })
  expect(fillMedia(edited({ image: 'a', size: '64x64' }), taken)).toMatchObject({ width: 64, height: 64 })
  expect(fillMedia(edited({ image: 'a', width: 64, height: 128 }), taken)).toMatchObject({ width: 64, height: 128 })
})

test('a mask must have the size of its image', () => {
  const masked = edited({ image: 'a', mask: 'b' })
  expect(fillMedia(masked, mask(640, 480))).toMatchObject({ mask: 'file-2', strength: 1 })
  expect(() => fillMedia(masked, mask(480, 640))).toThrow(/480 × 640 pixels and the image 640 × 480/)
})

test('several images are stored in their order', () => {
  const prepared = edited({ image: ['a', { image_url: 'http://b' }] })
  expect(prepared.media.map(({ field, value }) => [field, value])).toEqual([
    ['image[0]', 'a'],
    ['image[1].image_url', 'http://b'],
  ])
  const other = { ...taken.image, id: 'file-9', width: 100 }
  const filled = fillMedia(prepared, byKind(prepared.media, [taken.image, other]))
  expect(filled).toMatchObject({ width: 640, height: 480, image: 'file-1', images: ['file-1', 'file-9'] })
  expect(imageRequestOf(filled).image).toEqual(['file-1', 'file-9'])
})

test('the stored inputs are a request with the same result', () => {
  const first = fillMedia(edited({ image: 'a', mask: 'b', n: 2, quality: 'high', scheduler: 'x' }), mask(640, 480))
  const again = edited(imageRequestOf(first))
  expect(again.media.map(({ kind, value, alpha }) => [kind, value, alpha])).toEqual([
    ['image', 'file-1', undefined],
    ['mask', 'file-2', false],
  ])
  expect(fillMedia(again, mask(640, 480))).toEqual(first)
  const plain = inputsOf({ negative_prompt: 'b', size: '64x80' })
  expect(inputsOf(imageRequestOf(plain))).toEqual(plain)
})

test.each<[task: ImageTask, body: object, code: string, param: string]>([
  ['std/image-generation', { prompt: '' }, 'invalid_value', 'prompt'],
  ['std/image-generation', { size: '64' }, 'invalid_value', 'size'],
  ['std/image-generation', { size: '68x64' }, 'invalid_value', 'size'],
  ['std/image-generation', { width: 68, height: 64 }, 'invalid_value', 'width'],
  ['std/image-generation', { width: '512' }, 'invalid_type', 'width'],
  ['std/image-generation', { height: 4096 }, 'invalid_value', 'height'],
  ['std/image-generation', { size: '512x512', width: 512, height: 768 }, 'invalid_value', 'height'],
  ['std/image-edit', { image: 'a', size: '512x512', width: 768 }, 'invalid_value', 'width'],
  ['std/image-generation', { n: 1.5 }, 'invalid_type', 'n'],
  ['std/image-generation', { output_compression: 101 }, 'invalid_value', 'output_compression'],
  ['std/image-generation', { background: 'transparent', output_format: 'jpeg' }, 'invalid_value', 'background'],
  ['std/image-generation', { partial_images: 4 }, 'invalid_value', 'partial_images'],
  ['std/image-edit', {}, 'missing_required_parameter', 'image'],
  ['std/image-edit', { images: [] }, 'invalid_value', 'images'],
  ['std/image-edit', { image: Array.from({ length: 17 }, () => 'a') }, 'array_above_max_length', 'image'],
  ['std/image-edit', { image: 'a', mask: {} }, 'invalid_value', 'mask'],
  ['std/image-edit', { image: 'a', strength: 2 }, 'invalid_value', 'strength'],
])('%s with %o is refused: %s of %s', (task, body, code, param) => {
  let failure: unknown
  try {
    prepared(task, body)
  } catch (thrown) {
    failure = thrown
  }
  expect(failure).toBeInstanceOf(Failure)
  expect(failure).toMatchObject({ code, param })
})

test.each<[own: Task[], all: string[]]>([
  [['std/rerank'], []],
  [['slug/text-to-video'], []],
  [['slug/text-to-image'], ['std/image-generation']],
  [['slug/inpainting', 'std/image-edit'], ['std/image-edit']],
  [
    ['slug/image-to-image', 'slug/text-to-image'],
    ['std/image-generation', 'std/image-edit'],
  ],
  [['std/image-generation'], []],
])('of a model that does %o follows %o', (own, all) =>
  expect(withImplied(own).filter(task => task.startsWith('std/image'))).toEqual(all),
)
