import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import type { Failure } from '../../../../core/failure.ts'
import type { EngineProgress, Fleet, Lease } from '../../../../core/models/fleet.ts'
import { Model } from '../../../../core/models/model.ts'
import { type GenerationTask, operationOf } from '../../../../core/schemas/task.ts'
import type { EngineInputs } from '../../../../core/tasks/protocols/generation-call.ts'
import { sdServer, sdServerProgress } from '../../../../core/tasks/protocols/sd-server.ts'
import { openFleet } from '../../../../gpu/fleet.ts'
import { sdServer as preset } from '../../../../gpu/presets/sd-server.ts'
import { cpu } from '../../../gpu/_fleet.ts'
import { type LeasingFleet, leasing } from '../../../gpu/_leasing.ts'
import { keptLog, noSandbox, wrappersHere } from '../../../gpu/launcher/_launch.ts'
import { engineInputs } from './_inputs.ts'

/** The protocol against a server that misbehaves as the real one does (test/fixtures/sd-server.ts), as a real process. */
const folder = mkdtempSync(join(tmpdir(), 'infer-sd-'))
const fixture = join(import.meta.dirname, '../../../fixtures/sd-server.ts')
const image = Buffer.from('an image of some bytes')
const model = (id: string, args: string[] = []) =>
  Model.parse({
    id,
    engine: 'sd-server',
    source: '/models/sd.safetensors',
    memory: '1GiB',
    devices: 'cpu',
    tasks: [
      'slug/text-to-image',
      'slug/image-to-image',
      'slug/inpainting',
      'slug/text-to-video',
      'slug/image-to-video',
    ],
    no_progress: '30s',
    stop_grace: '500ms',
    args: ['--image', join(folder, 'image.png'), '--video', join(folder, 'image.png'), ...args],
  })
const models = [
  model('new'),
  model('openai', ['--lacks', 'sdcpp']),
  model('webui', ['--lacks', 'sdcpp,openai']),
  model('none', ['--lacks', 'sdcpp,openai,sdapi']),
]
let fleet: Fleet & LeasingFleet

beforeAll(async () => {
  writeFileSync(join(folder, 'image.png'), image)
  writeFileSync(join(folder, 'sd-server'), `#!/bin/sh\nexec '${process.execPath}' '${fixture}' "$@"\n`)
  chmodSync(join(folder, 'sd-server'), 0o755)
  const opened = await openFleet({
    models: () => models,
    dataDir: join(folder, 'data'),
    bootId: `boot-${process.pid}`,
    log: keptLog(),
    limits: { engine_backoff: 100, order_bound: 1, cancel_grace: 400 },
    environment: { ...process.env, PATH: `${folder}:${process.env.PATH}` },
    machine: {
      wrapper: wrappersHere[0]!,
      sandbox: noSandbox,
      devices: {
        cards: async () => ({ devices: [], reason: null, broken: false }),
        processes: async () => null,
        cpu,
      },
    },
  })
  fleet = leasing(opened, models)
})
afterAll(async () => {
  await fleet.close(0)
  rmSync(folder, { recursive: true, force: true })
})

interface Running {
  task?: GenerationTask
  on?: string
  signal?: AbortSignal
  route?: object
  onProgress?: (fraction: number) => void
}

async function generated(more: Partial<EngineInputs>, running: Running = {}) {
  const { task = 'slug/text-to-image', on = 'new', signal = new AbortController().signal } = running
  const lease = await fleet.lease(models.find(({ id }) => id === on)!, { waitMs: 30_000 })
  onTestFinished(() => lease.release())
  const out = mkdtempSync(join(folder, 'out-'))
  const [fractions, said]: [number[], string[]] = [[], []]
  const report = {
    progress(fraction: number) {
      fractions.push(fraction)
      running.onProgress?.(fraction)
    },
    log: (level: string, message: string) => void said.push(`${level} ${message}`),
  }
  const route = { protocol: sdServer.name, path: sdServer.paths[operationOf(task)]!, ...running.route }
  const call = { task, model: on, inputs: engineInputs(more), folder: out }
  const download = () => Promise.reject(new Error('Nothing is downloaded'))
  const end = await sdServer.generate(lease, route, call, signal, report, download).catch((thrown: Failure) => thrown)
  return { end, fractions, said, out, lease }
}

/** What the engine was asked last, of its own routes. */
async function lastRequest(lease: Lease): Promise<{ path: string; body: Record<string, unknown> }> {
  const text = await new Promise<string>((resolve, reject) => {
    const parts: Buffer[] = []
    lease.open(
      { method: 'GET', path: '/requests', body: '', stream: false, maxBytes: 64 << 20 },
      {
        accepted() {},
        chunk: part => void parts.push(part),
        finished: () => resolve(Buffer.concat(parts).toString()),
        failed: reject,
      },
    )
  })
  return (JSON.parse(text) as { path: string; body: Record<string, unknown> }[]).at(-1)!
}

test('two images from a text: fields, files, seed, and progress that never goes back', async () => {
  const { end, fractions, out, lease } = await generated({ num_images: 2, extra: { scheduler: 'karras', img_cfg: 2 } })
  expect(end).toMatchObject({ type: 'completed', seed_used: 7, files: [{ kind: 'image' }, { kind: 'image' }] })
  const { files } = end as { files: { name: string }[] }
  expect(files.map(({ name }) => readFileSync(join(out, name)))).toEqual([image, image])
  expect(fractions).toEqual(fractions.toSorted((one, other) => one - other))
  // How many of the eight steps are seen depends on when the output is read.
  expect(fractions.some(fraction => fraction < 1)).toBe(true)
  expect(fractions.at(-1)).toBe(1)
  expect(await lastRequest(lease)).toEqual({
    path: '/sdcpp/v1/img_gen',
    body: {
      prompt: 'a cat',
      negative_prompt: 'dogs',
      width: 64,
      height: 32,
      seed: 7,
      strength: 0.5,
      batch_count: 2,
      output_format: 'png',
      output_compression: 100,
      sample_params: { scheduler: 'karras', sample_steps: 4, guidance: { img_cfg: 2, txt_cfg: 6.5 } },
    },
  })
})

test('bars before and after the steps are not progress', async () => {
  const { fractions } = await generated({ prompt: 'tiled', num_inference_steps: 2 })
  // The output may be read after the answer, so not every step is always seen.
  expect(fractions.filter(one => ![0.5, 0.99, 1].includes(one))).toEqual([])
  expect(fractions).not.toEqual([])
})

test('a result of many megabytes is written as a file', async () => {
  const { end, out } = await generated({ prompt: 'huge' })
  const { files } = end as { files: { name: string }[] }
  expect(statSync(join(out, files[0]!.name)).size).toBe(6 << 20)
})

describe('input images', () => {
  const large = Buffer.alloc(500_001, 'xyz')
  const path = join(folder, 'input.png')
  beforeAll(() => writeFileSync(path, large))
  const text = large.toString('base64')

  test.each<[GenerationTask, Partial<EngineInputs>, object, object]>([
    ['slug/image-to-image', { image: path }, {}, { init_image: text, strength: 0.5 }],
    ['slug/image-to-image', { image: path }, { images: 'reference' }, { ref_images: [text] }],
    ['slug/image-to-image', { image: path, images: [path, path] }, {}, { ref_images: [text, text] }],
    ['slug/inpainting', { image: path, mask: path }, {}, { init_image: text, mask_image: text }],
  ])('%s %#', async (task, images, route, sent) => {
    const { end, lease } = await generated(images, { task, route })
    expect(end).toMatchObject({ type: 'completed' })
    expect((await lastRequest(lease)).body).toMatchObject(sent)
  })

  test('a video: 4n+1 frames as AVI', async () => {
    const video = { image: path, num_frames: 16, output_format: 'mp4' } as const
    const { end, lease, said, out } = await generated(video, { task: 'slug/image-to-video' })
    const { files } = end as { files: { name: string; kind: string }[] }
    expect(files).toEqual([{ name: expect.stringMatching(/\.avi$/) as string, kind: 'video' }])
    expect(readFileSync(join(out, files[0]!.name))).toEqual(image)
    expect(said).toEqual(['INFO The engine makes 4n+1 frames: 13 instead of 16.'])
    const { path: to, body } = await lastRequest(lease)
    expect(to).toBe('/sdcpp/v1/vid_gen')
    expect(body).toMatchObject({ video_frames: 13, fps: 16, output_format: 'avi', init_image: text })
    expect(body).not.toHaveProperty('batch_count')
  })
})

test.each<[prompt: string, code: string, words: string | RegExp, running?: Running]>([
  ['fail', 'worker_error', 'has failed the job: generate_image returned no results at [path removed]'],
  ['cancelled', 'worker_error', 'has cancelled the job'],
  ['full', 'no_capacity', 'takes no more requests'],
  ['invalid', 'invalid_value', 'The engine refused the request: invalid generation parameters'],
  ['gone', 'worker_error', 'answered 410'],
  ['cut', 'worker_error', 'broke off'],
  ['nothing', 'worker_error', 'without a result'],
  ['odd', 'worker_error', 'no known status'],
  ['image only', 'unsupported_task', 'does not support vid_gen', { task: 'slug/text-to-video' }],
])('%s', async (prompt, code, words, running) => {
  expect((await generated({ prompt }, running)).end).toMatchObject({
    code,
    message: expect.stringContaining(words as string) as string,
  })
})

test('a job that the engine does not know any more is an engine error', async () => {
  expect((await generated({ prompt: 'lost' })).end).toMatchObject({ code: 'worker_error' })
})

test('an extra field that the engine lacks is named', async () => {
  const { end } = await generated({ extra: { colour: 'red' } })
  expect(end).toMatchObject({ code: 'unsupported_parameter', param: 'colour' })
})

test('a running job that cannot be cancelled keeps the slot until it ends or the engine is killed', async () => {
  const abort = new AbortController()
  const { end, lease } = await generated(
    { prompt: 'long', num_inference_steps: 200 },
    { signal: abort.signal, onProgress: () => abort.abort(new Error('cancelled by the user')) },
  )
  expect(end).toMatchObject({ message: 'cancelled by the user' })
  lease.release()
  // The job would run for 4 s; the engine is killed after the grace of 400 ms and started again for the next request.
  const next = await generated({})
  expect(next.end).toMatchObject({ type: 'completed' })
  expect(next.lease.engineId).not.toBe(lease.engineId)
})

test('a job that never ends is ended by the signal', async () => {
  const { end, lease } = await generated({ prompt: 'never' }, { signal: AbortSignal.timeout(300) })
  expect(end).toMatchObject({ name: 'TimeoutError' })
  lease.release()
})

describe('servers without jobs', () => {
  const path = join(folder, 'input.png')
  const extra = (prompt: unknown) =>
    JSON.parse(/<sd_cpp_extra_args>(.*?)<\/sd_cpp_extra_args>$/.exec(prompt as string)![1]!) as object

  test('OpenAI’s route for text; a prompt cannot set fields', async () => {
    const prompt = 'a <sd_cpp_extra_args>{"seed":1}</sd_cpp_extra_args> cat'
    const { end, lease, said } = await generated({ prompt, num_images: 2 }, { on: 'openai' })
    expect(end).toMatchObject({ type: 'completed', seed_used: 7, files: [{}, {}] })
    expect(said).toEqual([expect.stringContaining('WARN This build of sd-server has no jobs')])
    const { path: to, body } = await lastRequest(lease)
    expect([to, body.n, body.size, body.output_format]).toEqual(['/v1/images/generations', 2, '64x32', 'png'])
    expect(body.prompt).toMatch(/^a \{"seed":1\} cat <sd/)
    expect(extra(body.prompt)).toMatchObject({ seed: 7, sample_params: { sample_steps: 4 } })
  })

  test.each([
    ['openai', { image: path }, '/sdapi/v1/img2img'],
    ['webui', { image: path, mask: path }, '/sdapi/v1/img2img'],
    ['webui', {}, '/sdapi/v1/txt2img'],
  ])('%s %o', async (on, images, to) => {
    const task = 'image' in images ? 'slug/image-to-image' : 'slug/text-to-image'
    const { end, lease, out } = await generated(images, { on, task })
    const { files } = end as { files: { name: string }[] }
    expect(readFileSync(join(out, files[0]!.name))).toEqual(image)
    const request = await lastRequest(lease)
    expect(request.path).toBe(to)
    expect(request.body).toMatchObject({ steps: 4, cfg_scale: 6.5, seed: 7 })
  })

  test('what they cannot do is said', async () => {
    expect((await generated({ output_format: 'webp' }, { on: 'webui' })).end).toMatchObject({
      code: 'unsupported_parameter',
      param: 'output_format',
    })
    const none = { code: 'unsupported_task', message: expect.stringContaining('Update sd-server') as string }
    expect((await generated({}, { on: 'none' })).end).toMatchObject(none)
    expect((await generated({}, { on: 'openai', task: 'slug/text-to-video' })).end).toMatchObject(none)
  })
})

test('the steps of a video that two models divide are one progress', () => {
  const fractions: number[] = []
  const video = { num_images: 1, num_frames: 5, num_inference_steps: 4 }
  const step = sdServerProgress(video, { progress: of => fractions.push(of) })
  const steps: EngineProgress[] = [1, 1, 2, 2].map((pass, at) => ({ pass, step: (at % 2) + 1, steps: 2 }))
  for (const one of steps) step(one)
  expect(fractions).toEqual([0.25, 0.5, 0.75, 0.99])
})

test('the configuration', () => {
  const facts = { slots: 1, threads: 2, gpus: 0, memoryShare: 1, freeShare: 1, bytes: 0, backend: null }
  const commandOf = (more: object) =>
    preset.command(Model.parse({ id: 'm', engine: 'sd-server', source: '/m.gguf', ...more }), facts).join(' ')
  expect(commandOf({})).toBe('sd-server -m /m.gguf --listen-ip 127.0.0.1 --listen-port {port} -t 2')
  expect(commandOf({ args: ['--vae', '/v', '--t5xxl', '/t'] })).toMatch(
    /^sd-server --diffusion-model \/m\.gguf --listen/,
  )
  expect(commandOf({ args: ['--diffusion-model', '/d'] })).toMatch(/^sd-server --listen/)
  expect(preset.configurationFault(Model.parse({ id: 'm' }))).toContain("it needs 'source'")
  expect(preset.configurationFault(Model.parse({ id: 'm', source: '/m', concurrency: 2 }))).toContain('must be 1')
  const programs = (task: GenerationTask) => preset.programs!(models[0]!, task).map(({ name }) => name)
  expect([programs('slug/text-to-image'), programs('slug/image-to-video')]).toEqual([
    ['sd-server'],
    ['sd-server', 'ffmpeg'],
  ])
  const routeOf = (more: object) => preset.traits(Model.parse({ id: 'm', ...more })).routes['edit-image']
  expect([routeOf({})?.images, routeOf({ input_images: 4 })?.images]).toEqual([undefined, 'reference'])
})
