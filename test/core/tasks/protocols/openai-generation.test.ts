import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { Failure } from '../../../../core/failure.ts'
import type { EngineRoute } from '../../../../core/models/engine-traits.ts'
import { Model } from '../../../../core/models/model.ts'
import type { GenerationCall, GenerationInputs } from '../../../../core/tasks/protocols/generation-call.ts'
import { openaiImages } from '../../../../core/tasks/protocols/openai-images.ts'
import { openaiVideos } from '../../../../core/tasks/protocols/openai-videos.ts'
import { traitsOf } from '../../../../gpu/presets/presets.ts'
import session from '../../../fixtures/sglang-session.json' with { type: 'json' }
import { leaseOf } from './_elsewhere.ts'

/** Answers of OpenAI-style servers that are errors, and the fields that an engine of one's own gets. */
const folder = mkdtempSync(join(tmpdir(), 'infer-openai-'))
afterAll(() => rmSync(folder, { recursive: true }))

const inputs = {
  prompt: 'a cat',
  negative_prompt: 'dogs',
  seed: 7,
  width: 64,
  height: 48,
  num_images: 1,
  num_frames: 9,
  fps: 8,
  num_inference_steps: 4,
  guidance_scale: 3,
  output_format: 'png',
  image: null,
  extra: { flow_shift: 3 },
} as unknown as GenerationInputs
const fields = ['response_format', 'output_format', 'seed', 'negative_prompt', 'num_inference_steps'] as const
const images: EngineRoute = { protocol: 'openai-images', path: '/v1/images/generations', fields }
const videos: EngineRoute = {
  protocol: 'openai-videos',
  path: '/v1/videos',
  fields: ['seed', 'negative_prompt', 'num_frames', 'fps'],
}

async function generated(route: EngineRoute, body: object | string) {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  const { lease, sent } = await leaseOf({ type: 'application/json', body: text })
  const isVideo = route === videos
  const call: GenerationCall = {
    task: isVideo ? 'slug/text-to-video' : 'slug/text-to-image',
    model: 'm',
    inputs,
    folder,
  }
  const fetched: string[] = []
  const download = ({ url }: { url: string }) => {
    fetched.push(url)
    return Promise.reject(new Failure('url_fetch_failed', 'No.'))
  }
  const protocol = isVideo ? openaiVideos : openaiImages
  const report = { progress() {}, log() {} }
  const end = await protocol
    .generate(lease, route, call, new AbortController().signal, report, download)
    .catch((thrown: Failure) => thrown)
  return { end, sent, fetched }
}

test.each<[what: string, body: object | string, message: RegExp]>([
  ['no image', { data: [] }, /answered without an image/],
  ['an image without content', { data: [{}] }, /neither b64_json nor url/],
  ['no base64', { data: [{ b64_json: '%%%' }] }, /not base64/],
  ['no JSON', 'Internal error', /JSON/],
  [
    'a URL that is not allowed',
    { data: [{ url: 'http://10.1.2.3/x.png' }] },
    /URL of an image that could not be fetched/,
  ],
])('%s is an error of the engine', async (_what, body, message) => {
  const { end } = await generated(images, body)
  expect(end).toMatchObject({ code: 'worker_error', message: expect.stringMatching(message) as string })
})

test('a URL of another host is fetched under the rules for callers, and never through the engine', async () => {
  const { fetched, sent } = await generated(images, { data: [{ url: 'https://cdn.example.com/a.png' }] })
  expect([fetched, sent.length]).toEqual([['https://cdn.example.com/a.png'], 1])
})

test('an engine of ours gets the fields of its preset and those that the configuration allows', async () => {
  const { end, sent } = await generated(images, { data: [{ b64_json: 'aGVsbG8=' }] })
  expect(end).toMatchObject({ type: 'completed', seed_used: 7 })
  expect(existsSync(join(folder, (end as { files: { name: string }[] }).files[0]!.name))).toBe(true)
  expect(JSON.parse(sent[0]!.body.toString())).toEqual({
    model: 'm',
    prompt: 'a cat',
    n: 1,
    size: '64x48',
    response_format: 'b64_json',
    output_format: 'png',
    seed: 7,
    negative_prompt: 'dogs',
    num_inference_steps: 4,
    flow_shift: 3,
  })
})

test('a video with an unknown state is an error of the engine, and frames replace seconds', async () => {
  const { end, sent } = await generated(videos, { id: 'v', status: 'melted' })
  expect(end).toMatchObject({ code: 'worker_error', message: expect.stringMatching(/no known status/) as string })
  const form = sent[0]!.body.toString()
  expect([form.includes('name="num_frames"\r\n\r\n9'), form.includes('name="seconds"')]).toEqual([true, false])
  expect(sent.map(({ line }) => line)).toEqual(['POST /v1/videos', 'GET /v1/videos/v', 'DELETE /v1/videos/v'])
})

const state = (of: object) => ({ type: 'application/json', body: JSON.stringify({ object: 'video', id: 'v', ...of }) })
const call = (task: GenerationCall['task'], more: object = {}): GenerationCall => ({
  task,
  model: 'm',
  inputs: { ...inputs, ...more },
  folder,
})
const report = { progress() {}, log() {} }
const never = () => Promise.reject(new Error('Nothing is downloaded here'))

test.each<[code: number, message: string, expected: object]>([
  [
    500,
    'Model generation failed: CUDA out of memory',
    { code: 'worker_error', message: expect.stringMatching(/out of memory/) as string },
  ],
  [
    400,
    'num_frames must be 4n + 1',
    { code: 'invalid_value', message: expect.stringMatching(/num_frames must be 4n/) as string },
  ],
])('a failed video that is answered with status %i is read once', async (code, message, expected) => {
  const { lease, sent } = await leaseOf(line =>
    line.startsWith('POST')
      ? state({ status: 'queued' })
      : { status: code, ...state({ status: 'failed', error: { code, message } }) },
  )
  const end = openaiVideos.generate(lease, videos, call('slug/text-to-video'), AbortSignal.any([]), report, never)
  await expect(end).rejects.toMatchObject(expected)
  expect(sent.map(({ line }) => line)).toEqual(['POST /v1/videos', 'GET /v1/videos/v', 'DELETE /v1/videos/v'])
})

test.each(['stops', 'continues'] as const)(
  'a cancelled video that %s after a deletion keeps its slot until it has ended',
  async deletion => {
    let status = 'in_progress'
    const { lease, sent } = await leaseOf(line =>
      line.startsWith('DELETE')
        ? { status: 409, body: '{}' }
        : state({ status: line.startsWith('POST') ? 'queued' : status }),
    )
    const aborting = new AbortController()
    const route = { ...videos, deletion }
    const begun = openaiVideos.generate(lease, route, call('slug/text-to-video'), aborting.signal, report, never)
    await expect.poll(() => sent.length).toBeGreaterThan(1)
    aborting.abort(new Failure('cancelled', 'No more.'))
    await expect(begun).rejects.toMatchObject({ code: 'cancelled' })
    const lines = () => sent.map(({ line }) => line.split(' ')[0])
    expect(lines().filter(line => line === 'DELETE')).toHaveLength(deletion === 'stops' ? 1 : 0)
    const before = sent.length
    lease.release()
    await expect.poll(() => sent.length).toBeGreaterThan(before + 1)
    status = 'completed'
    await expect.poll(() => lines().at(-1)).toBe('GET')
  },
)

test('a form for inpainting has the image and the mask', async () => {
  const { lease, sent } = await leaseOf({ type: 'application/json', body: '{"data":[{"b64_json":"aGVsbG8="}]}' })
  const folder = mkdtempSync(join(tmpdir(), 'infer-openai-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const [image, mask] = ['image', 'mask'].map(name => join(folder, `${name}.png`)) as [string, string]
  for (const path of [image, mask]) writeFileSync(path, `content of ${path}`)
  const edits: EngineRoute = {
    protocol: 'openai-images',
    path: '/v1/images/edits',
    fields: ['strength', 'output_path'],
  }
  await openaiImages.generate(
    lease,
    edits,
    { ...call('slug/inpainting', { image, mask, strength: 0.5, negative_prompt: null }), folder },
    AbortSignal.any([]),
    report,
    never,
  )
  const form = sent[0]!.body.toString()
  for (const [name, content] of [
    ['image', `content of ${image}`],
    ['mask', `content of ${mask}`],
  ])
    expect(form).toMatch(
      new RegExp(`name="${name}"; filename="[^"]+"\\r\\ncontent-type: [^\\r]+\\r\\n\\r\\n${content}`),
    )
  expect(form).toContain('name="strength"\r\n\r\n0.5')
  expect(form).toContain(`name="output_path"\r\n\r\n${folder}`)
})

test('an id that would change the path is refused', async () => {
  expect((await generated(videos, { id: '../admin' })).end).toMatchObject({ code: 'worker_error' })
})

/**
 * Recorded from SGLang 0.5.23, whose server and diffusers backend made a video with a tiny Wan pipeline on the processor;
 * equal answers to polls and the paths of files are left out.
 */
describe('a recorded session of SGLang', () => {
  test('becomes a video: the same requests in the same order, and a deletion at the end', async () => {
    const left = [...session.video]
    const { lease, sent } = await leaseOf(line => {
      const { status, answer } = left[0]!.line === line ? left.shift()! : { status: 500, answer: `not ${line}` }
      return typeof answer === 'string'
        ? { status, type: 'video/mp4', body: answer }
        : { status, type: 'application/json', body: JSON.stringify(answer) }
    })
    const own = mkdtempSync(join(tmpdir(), 'infer-openai-'))
    onTestFinished(() => rmSync(own, { recursive: true }))
    const model = Model.parse({ id: 'm', engine: 'sglang-diffusion', source: '/m', tasks: ['slug/text-to-video'] })
    const route = traitsOf(model).routes['create-video']!
    const asked = { seed: 7, width: 96, height: 64, num_frames: 9, fps: 8, num_inference_steps: 6, guidance_scale: 5 }
    const of = { ...call('slug/text-to-video', { ...asked, negative_prompt: null, extra: {} }), folder: own }
    await expect(openaiVideos.generate(lease, route, of, AbortSignal.any([]), report, never)).resolves.toMatchObject({
      type: 'completed',
      files: [{ name: 'video.mp4', kind: 'video' }],
    })
    expect(left).toEqual([])
    const form = await new Response(sent[0]!.body, { headers: { 'content-type': sent[0]!.type! } }).formData()
    expect(Object.fromEntries(form)).toEqual({ ...session.fields, model: 'm', output_path: own })
  })
  test('a refusal keeps its words', async () => {
    const { status, answer } = session.refused
    const { lease } = await leaseOf({ status, type: 'application/json', body: JSON.stringify(answer) })
    const end = openaiImages.generate(lease, images, call('slug/text-to-image'), AbortSignal.any([]), report, never)
    await expect(end).rejects.toMatchObject({
      code: 'invalid_value',
      message: expect.stringContaining('does not support IMAGE output') as string,
    })
  })
})
