import { describe, expect, test } from 'vitest'
import { Failure } from '../../../../core/failure.ts'
import { type GenerationTask, generationTasks } from '../../../../core/schemas/task.ts'
import { inputSchema } from '../../../../core/tasks/generation/input-schema.ts'
import { fillMedia } from '../../../../core/tasks/generation/media.ts'
import { prepareGeneration } from '../../../../core/tasks/generation/prepare.ts'
import type { GenerationInputs } from '../../../../core/tasks/protocols/generation-call.ts'

const plain = { extra_params: [], resolutions: undefined }
const video = 'slug/text-to-video'
const image = 'slug/text-to-image'
const prepared = (task: GenerationTask, body: unknown, model: Parameters<typeof prepareGeneration>[2] = plain) =>
  prepareGeneration(task, body, model, () => 7)
const refusal = (task: GenerationTask, body: unknown, model = plain): Failure => {
  try {
    prepared(task, body, model)
  } catch (thrown) {
    if (thrown instanceof Failure) return thrown
    throw thrown
  }
  throw new Error('It was accepted')
}

test('absent fields have the values of the balanced preset', () => {
  expect(prepared(video, { prompt: 'a cat', colour: 'red' })).toEqual({
    task: video,
    inputs: {
      prompt: 'a cat',
      negative_prompt: null,
      seed: 7,
      width: 832,
      height: 480,
      num_images: 1,
      num_frames: 81,
      fps: 16,
      num_inference_steps: 30,
      guidance_scale: 5,
      strength: 0.8,
      output_format: 'mp4',
      image: null,
      mask: null,
      video: null,
      audio: null,
      extra: {},
    },
    media: [],
    sizeFromMedia: false,
    lengthFromMedia: false,
    syncMode: false,
  })
})

const tuned = {
  ...plain,
  generation_defaults: { num_inference_steps: 4, guidance_scale: 1, width: 512, height: 768, num_frames: 121, fps: 24 },
}

test.each([
  [image, {}, { num_inference_steps: 4, guidance_scale: 1, width: 512, height: 768, num_frames: 1 }],
  [video, {}, { num_inference_steps: 4, guidance_scale: 1, width: 512, height: 768, num_frames: 121, fps: 24 }],
  [video, { duration: 2 }, { num_frames: 48, fps: 24 }],
  [video, { num_inference_steps: 6, guidance_scale: 2, fps: 8 }, { num_inference_steps: 6, guidance_scale: 2, fps: 8 }],
  [
    video,
    { preset: 'fast_draft' },
    { num_inference_steps: 10, guidance_scale: 1, num_frames: 41, fps: 16, width: 512 },
  ],
  [video, { aspect_ratio: '1:1' }, { width: 624, height: 624 }],
  [video, { resolution: '720p' }, { width: 1280, height: 720 }],
  [image, { image_size: 'square' }, { width: 512, height: 512 }],
] satisfies [GenerationTask, object, Partial<GenerationInputs>][])(
  '%s %j has the values of the model where the request sets none',
  (task, request, expected) => {
    expect(prepared(task, { prompt: 'a cat', ...request }, tuned).inputs).toMatchObject(expected)
  },
)

test('a length that the frame rate of the model makes too long is refused', () => {
  expect(() => prepared(video, { prompt: 'a cat', duration: 13 }, tuned)).toThrow('this is 312 frames')
})

test('an absent seed is random', () => {
  const drawn = Array.from({ length: 20 }, () => prepareGeneration(video, { prompt: 'a' }, plain).inputs.seed)
  expect(new Set(drawn).size).toBeGreaterThan(15)
  expect(drawn.every(seed => Number.isInteger(seed) && seed >= 0 && seed < 2 ** 31)).toBe(true)
})

/** The request, and its meaning for the engine. */
const accepted: [GenerationTask, object, Partial<GenerationInputs>][] = [
  [video, { num_frames: 1 }, { num_frames: 1 }],
  [video, { num_frames: 300 }, { num_frames: 300 }],
  [video, { fps: 1 }, { fps: 1 }],
  [video, { fps: 60 }, { fps: 60 }],
  [video, { frames_per_second: 24 }, { fps: 24 }],
  [video, { fps: 12, frames_per_second: 24 }, { fps: 12 }],
  [video, { num_inference_steps: 1 }, { num_inference_steps: 1 }],
  [video, { num_inference_steps: 50 }, { num_inference_steps: 50 }],
  [video, { guidance_scale: 1 }, { guidance_scale: 1 }],
  [video, { guidance_scale: 20 }, { guidance_scale: 20 }],
  [video, { guidance_scale: 7.5 }, { guidance_scale: 7.5 }],
  [video, { seed: 0 }, { seed: 0 }],
  [video, { seed: null }, { seed: 7 }],
  [video, { seed: 2 ** 53 - 1 }, { seed: 2 ** 53 - 1 }],
  [video, { prompt: 'x'.repeat(10_000) }, { prompt: 'x'.repeat(10_000) }],
  [video, { negative_prompt: 'blurry' }, { negative_prompt: 'blurry' }],
  [video, { preset: 'fast_draft' }, { num_inference_steps: 10, num_frames: 41, fps: 16 }],
  [video, { preset: 'balanced' }, { num_inference_steps: 30, num_frames: 81, fps: 16 }],
  [video, { preset: 'high_quality' }, { num_inference_steps: 50, num_frames: 161, fps: 24 }],
  [video, { preset: 'high_quality', fps: 8 }, { num_inference_steps: 50, num_frames: 161, fps: 8 }],
  [video, { preset: 'fast_draft', num_frames: 9, num_inference_steps: 3 }, { num_inference_steps: 3, num_frames: 9 }],
  [video, { duration: '5s' }, { num_frames: 80, fps: 16 }],
  [video, { duration: '5' }, { num_frames: 80 }],
  [video, { duration: 2.5, fps: 24 }, { num_frames: 60 }],
  [video, { duration: 0.01 }, { num_frames: 1 }],
  [video, { duration: 5, fps: 60 }, { num_frames: 300 }],
  [video, { duration: 5, num_frames: 33 }, { num_frames: 33 }],
  [video, { resolution: '480p' }, { width: 832, height: 480 }],
  [video, { resolution: '480p', aspect_ratio: '9:16' }, { width: 480, height: 832 }],
  [video, { aspect_ratio: '1:1' }, { width: 624, height: 624 }],
  [video, { resolution: '720p' }, { width: 1280, height: 720 }],
  [video, { resolution: '720p', aspect_ratio: '9:16' }, { width: 720, height: 1280 }],
  [video, { resolution: '720p', aspect_ratio: '1:1' }, { width: 960, height: 960 }],
  [video, { image_size: { width: 64, height: 2048 } }, { width: 64, height: 2048 }],
  [video, { image_size: { width: 500, height: 333 }, aspect_ratio: '1:1' }, { width: 496, height: 336 }],
  [video, { width: 320, height: 192 }, { width: 320, height: 192 }],
  [video, { width: 320 }, { width: 320, height: 320 }],
  [video, { num_images: 9 }, { num_images: 1 }],
  [video, { output_format: 'mp4' }, { output_format: 'mp4' }],
  [video, { enable_prompt_expansion: false, prompt_optimizer: false }, {}],
  [image, {}, { width: 1024, height: 1024, num_frames: 1, num_images: 1, output_format: 'png' }],
  [image, { image_size: 'landscape_16_9' }, { width: 1024, height: 576 }],
  [image, { image_size: 'square' }, { width: 512, height: 512 }],
  [image, { aspect_ratio: '16:9' }, { width: 1280, height: 720 }],
  [image, { resolution: '480p' }, { width: 832, height: 480 }],
  [image, { num_images: 4, output_format: 'jpg' }, { num_images: 4, output_format: 'jpeg' }],
  [image, { num_frames: 50, output_format: 'webp' }, { num_frames: 1, output_format: 'webp' }],
  ['slug/image-to-image', { image_url: 'a', strength: 0 }, { strength: 0 }],
  ['slug/image-to-image', { image_url: 'a', strength: 1 }, { strength: 1 }],
  ['slug/inpainting', { image_url: 'a', mask_url: 'b' }, { strength: 1 }],
  ['slug/video-interpolation', { video_url: 'a', prompt: undefined }, { prompt: '', fps: 60 }],
  ['slug/video-interpolation', { video_url: 'a', fps: 30 }, { fps: 30 }],
]
test.each(accepted)('%s %j', (task, body, expected) => {
  expect(prepared(task, { prompt: 'a', ...body }).inputs).toMatchObject(expected)
})

/** The refused request, its field, and words of the message. */
const refused: [GenerationTask, object, string, string, string?][] = [
  [video, { prompt: undefined }, 'missing_required_parameter', 'prompt'],
  [video, { prompt: '' }, 'invalid_value', 'prompt', 'must not be empty'],
  [video, { prompt: 'x'.repeat(10_001) }, 'string_above_max_length', 'prompt', '10000'],
  [video, { prompt: 5 }, 'invalid_type', 'prompt'],
  [video, { num_frames: 0 }, 'invalid_value', 'num_frames', 'at least 1'],
  [video, { num_frames: 301 }, 'invalid_value', 'num_frames', 'at most 300'],
  [video, { num_frames: 1.5 }, 'invalid_type', 'num_frames'],
  [video, { num_frames: '81' }, 'invalid_type', 'num_frames'],
  [video, { fps: 0 }, 'invalid_value', 'fps'],
  [video, { fps: 61 }, 'invalid_value', 'fps', 'at most 60'],
  [video, { frames_per_second: 61 }, 'invalid_value', 'frames_per_second', "'frames_per_second'"],
  [video, { num_inference_steps: 0 }, 'invalid_value', 'num_inference_steps'],
  [video, { num_inference_steps: 51 }, 'invalid_value', 'num_inference_steps'],
  [video, { guidance_scale: 0.99 }, 'invalid_value', 'guidance_scale'],
  [video, { guidance_scale: 20.01 }, 'invalid_value', 'guidance_scale'],
  [video, { seed: -1 }, 'invalid_value', 'seed', 'at least 0'],
  [video, { seed: 0.5 }, 'invalid_type', 'seed'],
  [video, { resolution: '360p' }, 'invalid_value', 'resolution', '480p, 720p'],
  [video, { resolution: '1080p' }, 'invalid_value', 'resolution', '480p, 720p'],
  [video, { resolution: 480 }, 'invalid_value', 'resolution'],
  [video, { aspect_ratio: '4:3' }, 'invalid_value', 'aspect_ratio', '16:9, 9:16, 1:1'],
  [video, { aspect_ratio: 'auto' }, 'invalid_value', 'aspect_ratio'],
  [video, { image_size: 'huge' }, 'invalid_value', 'image_size', 'square_hd'],
  [video, { image_size: { width: 63, height: 64 } }, 'invalid_value', 'image_size.width', 'at least 64'],
  [video, { image_size: { width: 64, height: 2049 } }, 'invalid_value', 'image_size.height'],
  [video, { duration: 5.1, fps: 60 }, 'invalid_value', 'duration', '306 frames'],
  [video, { duration: 'long' }, 'invalid_value', 'duration'],
  [video, { duration: 0 }, 'invalid_value', 'duration'],
  [video, { preset: 'best' }, 'invalid_value', 'preset', 'fast_draft'],
  [video, { sync_mode: 'yes' }, 'invalid_type', 'sync_mode'],
  [video, { output_format: 'gif' }, 'invalid_value', 'output_format'],
  [
    'slug/video-interpolation',
    { video_url: 'a', enable_prompt_expansion: true },
    'unsupported_parameter',
    'enable_prompt_expansion',
  ],
  ['slug/video-interpolation', { video_url: 'a', prompt_optimizer: true }, 'unsupported_parameter', 'prompt_optimizer'],
  [image, { num_images: 0 }, 'invalid_value', 'num_images'],
  [image, { num_images: 5 }, 'invalid_value', 'num_images', 'at most 4'],
  [image, { output_format: 'mp4' }, 'invalid_value', 'output_format'],
  ['slug/image-to-video', {}, 'missing_required_parameter', 'image_url'],
  ['slug/image-to-video', { image_url: '' }, 'invalid_value', 'image_url'],
  ['slug/image-to-video', { image_urls: ['a', 'b'] }, 'invalid_type', 'image_urls'],
  ['slug/image-to-image', { image_url: 'a', strength: 1.01 }, 'invalid_value', 'strength'],
  ['slug/inpainting', { image_url: 'a' }, 'missing_required_parameter', 'mask_url'],
  ['slug/speech-to-video', { image_url: 'a' }, 'missing_required_parameter', 'audio_url'],
  ['slug/video-interpolation', {}, 'missing_required_parameter', 'video_url'],
]
test.each(refused)('%s %j is refused: %s %s', (task, body, code, param, words = '') => {
  const failure = refusal(task, { prompt: 'a', ...body })
  expect([failure.code, failure.param]).toEqual([code, param])
  expect(failure.message).toContain(words)
  expect(failure.message).toContain(`'${param}'`)
})

test.each([[null], [[]], ['text'], [5], [true]])('a body that is %j is refused', body => {
  expect(refusal(video, body)).toMatchObject({ code: 'invalid_type', param: undefined })
})

test("all errors are reported at once, in this API's form and in that of FastAPI", () => {
  const failure = refusal(video, { num_frames: 301, frames_per_second: 0, resolution: '8k' })
  expect(failure.details?.map(({ path, code }) => [path, code])).toEqual([
    ['prompt', 'missing_required_parameter'],
    ['resolution', 'invalid_value'],
    ['num_frames', 'invalid_value'],
    ['frames_per_second', 'invalid_value'],
  ])
  expect(failure.validation).toEqual([
    { loc: ['body', 'prompt'], msg: 'Field required', type: 'missing' },
    {
      loc: ['body', 'resolution'],
      msg: "Input should be '480p', '720p'",
      type: 'literal_error',
      ctx: { expected: "'480p', '720p'" },
      input: '8k',
    },
    {
      loc: ['body', 'num_frames'],
      msg: 'Input should be less than or equal to 300',
      type: 'less_than_equal',
      ctx: { le: 300 },
      input: 301,
    },
    {
      loc: ['body', 'frames_per_second'],
      msg: 'Input should be greater than or equal to 1',
      type: 'greater_than_equal',
      ctx: { ge: 1 },
      input: 0,
    },
  ])
})

test('a long input is not repeated whole', () => {
  const { validation } = refusal(video, { prompt: 'p'.repeat(20_000), seed: { a: 'x'.repeat(5_000) } })
  expect(JSON.stringify(validation).length).toBeLessThan(1_000)
})

test('a model may accept other resolutions, the first of which is the default', () => {
  const model = { extra_params: [], resolutions: ['1080p' as const] }
  expect(prepared(video, { prompt: 'a' }, model).inputs).toMatchObject({ width: 1920, height: 1088 })
  expect(() => prepared(video, { prompt: 'a', resolution: '480p' }, model)).toThrow('must be one of: 1080p')
})

test('unknown members that the configuration names are forwarded', () => {
  const model = { extra_params: ['shift', 'absent', 'constructor'], resolutions: undefined }
  expect(prepared(video, { prompt: 'a', shift: [5], other: 1 }, model).inputs.extra).toEqual({ shift: [5] })
})

describe('media', () => {
  test.each<[GenerationTask, object, object[]]>([
    ['slug/image-to-video', { image_url: 'A' }, [{ kind: 'image', field: 'image_url', value: 'A' }]],
    ['slug/image-to-video', { image: 'A' }, [{ kind: 'image', field: 'image', value: 'A' }]],
    ['slug/image-to-video', { image_urls: ['A'] }, [{ kind: 'image', field: 'image_urls', value: 'A' }]],
    [
      'slug/inpainting',
      { image_url: 'A', mask_image_url: 'B' },
      [
        { kind: 'image', field: 'image_url', value: 'A' },
        { kind: 'mask', field: 'mask_image_url', value: 'B' },
      ],
    ],
    ['slug/text-to-video', { image_url: 'A' }, []],
    ['slug/video-interpolation', { video_url: 'A' }, [{ kind: 'video', field: 'video_url', value: 'A' }]],
  ])('%s %j', (task, body, expected) => {
    expect(prepared(task, { prompt: 'a', ...body }).media).toEqual(expected)
  })

  const picture = (width: number, height: number) => ({ image: { id: 'file-1', width, height, durationMs: null } })
  test.each<[GenerationTask, object, number, number, Partial<GenerationInputs>]>([
    ['slug/image-to-video', {}, 3000, 2000, { width: 832, height: 480 }],
    ['slug/image-to-video', {}, 1000, 1100, { width: 624, height: 624 }],
    ['slug/image-to-video', { resolution: '720p' }, 1080, 1920, { width: 720, height: 1280 }],
    ['slug/image-to-video', { aspect_ratio: 'auto' }, 1080, 1920, { width: 480, height: 832 }],
    ['slug/image-to-video', { aspect_ratio: '1:1' }, 1080, 1920, { width: 624, height: 624 }],
    ['slug/image-to-video', { image_size: 'square' }, 1080, 1920, { width: 512, height: 512 }],
    ['slug/image-to-image', {}, 700, 500, { width: 704, height: 496 }],
    ['slug/image-to-image', {}, 8000, 4000, { width: 2048, height: 1024 }],
    ['slug/image-to-image', {}, 5, 4000, { width: 64, height: 2048 }],
    ['slug/image-to-image', { image_size: 'square' }, 700, 500, { width: 512, height: 512 }],
  ])('%s %j of an image of %i × %i', (task, body, width, height, expected) => {
    const preparedRequest = prepared(task, { prompt: 'a', image_url: 'x', ...body })
    expect(fillMedia(preparedRequest, picture(width, height))).toMatchObject({ image: 'file-1', ...expected })
  })

  test('a video is as long as its speech', () => {
    const speech = (body: object, durationMs: number | null) =>
      fillMedia(prepared('slug/speech-to-video', { prompt: 'a', image_url: 'x', audio_url: 'y', ...body }), {
        ...picture(640, 480),
        audio: { id: 'file-2', width: null, height: null, durationMs },
      }).num_frames
    expect(speech({}, 5_000)).toBe(80)
    expect(speech({ fps: 30 }, 10_000)).toBe(300)
    expect(() => speech({ fps: 30 }, 10_100)).toThrow("'audio_url' lasts 10.1 s; at 30 frames a second")
    expect(speech({ num_frames: 33 }, 99_000)).toBe(33)
    expect(speech({ duration: 1 }, 99_000)).toBe(16)
    expect(speech({}, null)).toBe(81)
  })

  test('an interpolated video keeps size and length', () => {
    const source = { id: 'file-3', width: 300, height: 200, durationMs: 2_000 }
    const preparedRequest = (body: object) => prepared('slug/video-interpolation', { video_url: 'x', ...body })
    expect(fillMedia(preparedRequest({}), { video: source })).toMatchObject({
      width: 300,
      height: 200,
      num_frames: 120,
      fps: 60,
    })
    expect(fillMedia(preparedRequest({ fps: 24 }), { video: source }).num_frames).toBe(48)
    expect(() => fillMedia(preparedRequest({}), { video: { ...source, durationMs: 60_000 } })).toThrow(
      'at most 1800 are allowed',
    )
  })
})

test.each(generationTasks)('the stored inputs of %s are a valid request', task => {
  const preparedRequest = prepared(task, { prompt: 'a', image_url: 'x', mask_url: 'm', video_url: 'v', audio_url: 's' })
  const facts = { width: 512, height: 512, durationMs: 1_000 }
  const taken = Object.fromEntries(preparedRequest.media.map(({ kind }) => [kind, { id: `file-${kind}`, ...facts }]))
  const stored = fillMedia(preparedRequest, taken)
  const again = prepared(task, JSON.parse(JSON.stringify(stored)))
  expect(fillMedia(again, taken)).toEqual(stored)
})

test.each(generationTasks)('the JSON Schema of %s is self-contained and has the bounds', task => {
  const schema = inputSchema(task, ['480p']) as {
    type: string
    required: string[]
    properties: Record<string, { enum?: string[]; minimum?: number; maximum?: number }>
  }
  expect(schema.type).toBe('object')
  expect(JSON.stringify(schema)).not.toMatch(/\$ref|"null"/)
  expect(schema.required).toContain(task === 'slug/video-interpolation' ? 'video_url' : 'prompt')
  expect(schema.properties.num_inference_steps).toMatchObject({ type: 'integer', minimum: 1, maximum: 50 })
  expect(schema.properties.seed?.maximum).toBeUndefined()
  if (schema.properties.resolution) expect(schema.properties.resolution.enum).toEqual(['480p'])
})

test.each([
  ['enable_prompt_expansion', { enable_prompt_expansion: true, prompt_optimizer: null }],
  ['prompt_optimizer', { prompt_optimizer: true }],
  [undefined, { enable_prompt_expansion: false }],
  [undefined, {}],
])('the field that asks for a rewritten prompt is %s for %j', (field, more) => {
  expect(prepared(video, { prompt: 'a', ...more }).expansionField).toBe(field)
})
