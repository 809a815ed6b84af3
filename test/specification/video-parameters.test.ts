import sharp from 'sharp'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fakeModel, startApp, type TestApp } from '../_app.ts'
import { ask, painters, until } from '../server/surfaces/slug/_painter.ts'

/** Section 2.7 of the specification, sentence by sentence. */

let app: TestApp
beforeAll(async () => {
  app = await startApp({ models: [fakeModel('writer'), ...painters], prompt_rewriting: { model: 'writer' } })
})
afterAll(() => app[Symbol.asyncDispose]())

const textToVideo = '/slug/fake/paint/text-to-video'
const imageToVideo = '/slug/fake/paint/image-to-video'
const short = { prompt: 'a cat', num_frames: 2, fps: 8 }

const submit = (body: object, path = textToVideo) => ask(app, path, { body })

/** The inputs that the engine got, and the result. */
async function run(body: object, path = textToVideo) {
  const answer = await submit(body, path)
  expect([answer.status, answer.text]).toEqual([202, expect.any(String)])
  const { logs, result } = await until(app, answer.body.request_id, 'COMPLETED')
  return { inputs: JSON.parse(logs[0].message) as Record<string, unknown>, result }
}

const dataUrl = async (format: 'png' | 'jpeg' | 'webp' | 'gif' | 'avif' | 'tiff') => {
  const image = sharp({ create: { width: 32, height: 32, channels: 3, background: 'red' } })
  return `data:image/${format};base64,${(await image[format]().toBuffer()).toString('base64')}`
}

describe('prompt: string, required', () => {
  test.each([
    { ...short, prompt: undefined },
    { ...short, prompt: '' },
    { ...short, prompt: 5 },
  ])('%j is refused', async body => {
    const { status, body: answer } = await submit(body)
    expect([status, answer.error.param]).toEqual([400, 'prompt'])
  })
  test('it reaches the engine', async () => expect((await run(short)).inputs.prompt).toBe('a cat'))
})

describe('image_url: string, image-to-video only; an image of at most 10 MB', () => {
  test('text-to-video has no image_url', async () => {
    const { status, body } = await submit({ ...short, image_url: await dataUrl('png') })
    expect([status, body.error.code]).toEqual([400, 'unknown_parameter'])
  })
  test('image-to-video requires it', async () => {
    const { status, body } = await submit(short, imageToVideo)
    expect([status, body.error.code, body.error.param]).toEqual([400, 'missing_required_parameter', 'image_url'])
  })
  test.each(['png', 'jpeg', 'webp', 'gif', 'avif'] as const)('%s is accepted', async format => {
    expect((await submit({ ...short, image_url: await dataUrl(format) }, imageToVideo)).status).toBe(202)
  })
  test('tiff is refused', async () => {
    const { status, body } = await submit({ ...short, image_url: await dataUrl('tiff') }, imageToVideo)
    expect([status, body.error.code, body.error.param]).toEqual([400, 'invalid_image', 'image_url'])
  })
  test.each([
    [10 * 1024 ** 2 + 1, /is larger than 10 MB/],
    // Within the limit: refused for its content, which is no image.
    [10 * 1024 ** 2, /neither a JPEG nor a PNG|is not a JPEG or PNG|JPEG/],
  ])('one of %i bytes', async (bytes, words) => {
    const image_url = `data:image/png;base64,${Buffer.alloc(bytes).toString('base64')}`
    const { status, body } = await submit({ ...short, image_url }, imageToVideo)
    expect([status, body.error.code]).toEqual([400, 'invalid_image'])
    expect(body.error.message).toMatch(words)
  })
})

/** Name, lowest, highest, and a value of the wrong type. */
const bounds: [string, number, number, unknown][] = [
  ['num_frames', 1, 300, 1.5],
  ['fps', 1, 60, 8.5],
  ['num_inference_steps', 1, 50, 10.5],
  ['guidance_scale', 1, 20, '5'],
]
describe.each(bounds)('%s: from %i to %i', (name, least, most, wrong) => {
  test.each([least, most])('%i is accepted and reaches the engine', async value => {
    // A few frames at the bound of the rate, and one frame a second at the bound of the frames, keep the fake engine quick.
    const { inputs } = await run({ prompt: 'a cat', num_frames: 1, fps: 60, [name]: value, aspect_ratio: '1:1' })
    expect(inputs[name]).toBe(value)
  })
  test.each([least - 1, most + 1, wrong])('%j is refused', async value => {
    const { status, body } = await submit({ ...short, [name]: value })
    expect([status, body.error.param]).toEqual([400, name])
  })
})

test('guidance_scale is a number and not an integer', async () => {
  expect((await run({ ...short, guidance_scale: 7.5 })).inputs.guidance_scale).toBe(7.5)
})

describe('seed: integer, fixes the output for reproduction', () => {
  test('the same seed gives the same video, and the result says which seed was used', async () => {
    const videoOf = async () => {
      const { inputs, result } = await run({ ...short, seed: 42 })
      expect([inputs.seed, result.seed_used]).toEqual([42, 42])
      return Buffer.from(await (await fetch(result.video.url as string)).arrayBuffer())
    }
    expect((await videoOf()).equals(await videoOf())).toBe(true)
  })
  test.each([-1, 1.5, '42'])('%j is refused', async seed => {
    const { status, body } = await submit({ ...short, seed })
    expect([status, body.error.param]).toEqual([400, 'seed'])
  })
})

describe('resolution: 480p or 720p; aspect ratio: 16:9, 9:16, 1:1', () => {
  test.each([
    ['480p', '16:9', 832, 480],
    ['480p', '9:16', 480, 832],
    ['480p', '1:1', 624, 624],
    ['720p', '16:9', 1280, 720],
    ['720p', '9:16', 720, 1280],
    ['720p', '1:1', 960, 960],
  ])('%s in %s is a video of %i × %i', async (resolution, aspect_ratio, width, height) => {
    const { result } = await run({ ...short, num_frames: 1, resolution, aspect_ratio })
    expect([result.width, result.height]).toEqual([width, height])
  })
  test.each([
    ['resolution', '1080p'],
    ['resolution', 720],
    ['aspect_ratio', '4:3'],
  ])('%s %j is refused', async (name, value) => {
    const { status, body } = await submit({ ...short, [name]: value })
    expect([status, body.error.param]).toEqual([400, name])
  })
})

describe('sync_mode: boolean, false by default', () => {
  test('without it the answer is 202 with the id', async () => {
    const { status, body } = await submit(short)
    expect([status, body.status, Object.hasOwn(body as object, 'video')]).toEqual([202, 'processing', false])
  })
  test('with it the answer is the result', async () => {
    const { status, body } = await submit({ ...short, sync_mode: true })
    expect([status, body.status, body.video.content_type]).toEqual([200, 'completed', 'video/mp4'])
  })
  test('another type is refused', async () => {
    const { status, body } = await submit({ ...short, sync_mode: 'yes' })
    expect([status, body.error.param]).toEqual([400, 'sync_mode'])
  })
})

describe('quality presets: steps, frames and frames per second', () => {
  test.each([
    ['fast_draft', 10, 41, 16],
    ['balanced', 30, 81, 16],
    ['high_quality', 50, 161, 24],
  ])('%s is %i, %i, %i', async (preset, num_inference_steps, num_frames, fps) => {
    const { inputs } = await run({ prompt: 'a cat', preset, width: 64, height: 64 })
    expect(inputs).toMatchObject({ num_inference_steps, num_frames, fps })
  })
})

test('a Generate All Formats action produces three videos at once, one per aspect ratio', async () => {
  const { body } = await submit({ ...short, aspect_ratios: ['16:9', '9:16', '1:1'] })
  const ids = (body.requests as { request_id: string }[]).map(({ request_id }) => request_id)
  const videos = await Promise.all(ids.map(id => until(app, id, 'COMPLETED')))
  expect(videos.map(({ width, height }) => [width, height])).toEqual([
    [832, 480],
    [480, 832],
    [624, 624],
  ])
})

test('prompt rewriting is an optional enhancement of the prompt', async () => {
  const prompt = 'a cat mode:rewrites'
  const { inputs, result } = await run({ ...short, prompt, enable_prompt_expansion: true })
  expect([inputs.prompt, result.prompt, result.original_prompt]).toEqual(['rewritten 1', 'rewritten 1', prompt])
  expect((await run(short)).inputs.prompt).toBe('a cat')
})
