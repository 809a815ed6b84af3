import { once } from 'node:events'
import { existsSync, readdirSync, statSync } from 'node:fs'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { buffer, text } from 'node:stream/consumers'
import sharp from 'sharp'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { generationTasks } from '../../../../core/schemas/task.ts'
import { EngineMessage, type GenerationCall } from '../../../../core/tasks/protocols/generation-call.ts'
import type { Completed } from '../../../../core/tasks/protocols/infer-generation.ts'
import { hasFfmpeg } from '../../../_ffmpeg.ts'
import { callOf, childrenOf, type Demo, greys, newFolder, type Short, startDemo } from './_engine.ts'

let demo: Demo
/** A step is long enough to be interrupted. */
let slow: Demo
beforeAll(async () => {
  ;[demo, slow] = await Promise.all([startDemo(), startDemo(['--step-ms', '60000'])])
})

const children = (engine: Demo) => childrenOf(engine.child.pid!)
/** Calls for a video whose first frame is made and whose second is not. */
const long = () => callOf('text-to-video', { num_frames: 2, num_inference_steps: 50 })

test('progress increases from step to step, with a log line for each', async ({ skip }) => {
  skip(!hasFfmpeg)
  const { messages } = await demo.generate(callOf('text-to-video', { num_frames: 20, num_inference_steps: 7 }))
  const steps = messages.flatMap(message => (message.type === 'log' ? [message.message] : []))
  expect(steps).toEqual([1, 2, 3, 4, 5, 6, 7].map(step => `step ${step}/7`))
  const progress = messages.flatMap(message => (message.type === 'progress' ? [message.fraction] : []))
  expect(progress).toEqual(progress.toSorted((a, b) => a - b))
  expect([progress.length >= 7, progress.at(-1)]).toEqual([true, 1])
  expect(messages.filter(message => message.type === 'completed')).toHaveLength(1)
})

test('steps take the configured time', async () => {
  const paced = await startDemo(['--step-ms', '150'])
  const began = performance.now()
  await paced.generate(callOf('text-to-image', { num_inference_steps: 4 }))
  expect(performance.now() - began).toBeGreaterThan(4 * 149)
})

describe('a caller that disconnects', () => {
  test('frees the engine at once, and no program is left', async ({ skip }) => {
    skip(!hasFfmpeg)
    const calls = await Promise.all([
      slow.begin(long()),
      slow.begin(callOf('text-to-image', { num_inference_steps: 2 })),
    ])
    await expect.poll(async () => (await slow.health()).running).toBe(2)
    expect(children(slow)).toEqual(['ffmpeg'])
    const hungUp = performance.now()
    for (const { hangUp } of calls) hangUp()
    while ((await slow.health()).running > 0) await new Promise(setImmediate)
    expect(performance.now() - hungUp).toBeLessThan(2_000)
    // Ended processes have ended already: there is no polling here.
    expect(children(slow)).toEqual([])
    expect(slow.log.filter(line => line.includes('failed'))).toEqual([])
  })

  test('while ffmpeg computes frees the engine as well', async ({ skip }) => {
    skip(!hasFfmpeg)
    const source = await demo.generate(callOf('text-to-video', { width: 832, height: 480, num_frames: 40 }))
    const video = source.files[0]!
    const call = callOf('video-interpolation', { video, width: 832, height: 480, num_frames: 300, fps: 60 })
    const { hangUp } = await demo.begin(call)
    expect(children(demo)).toEqual(['ffmpeg'])
    const hungUp = performance.now()
    hangUp()
    while ((await demo.health()).running > 0) await new Promise(setImmediate)
    expect(performance.now() - hungUp).toBeLessThan(2_000)
    expect(children(demo)).toEqual([])
  })
})

test('/health answers during the generation of videos', async ({ skip }) => {
  skip(!hasFfmpeg)
  const films = [1, 2].map(seed =>
    demo.generate(callOf('text-to-video', { seed, width: 1280, height: 720, num_frames: 12 })),
  )
  const film = { done: false }
  void Promise.all(films).finally(() => (film.done = true))
  const took: number[] = []
  while (!film.done) {
    const asked = performance.now()
    await demo.health()
    took.push(performance.now() - asked)
  }
  expect((await Promise.all(films)).every(({ files }) => files.length === 1)).toBe(true)
  took.sort((a, b) => a - b)
  expect(took.length).toBeGreaterThan(10)
  expect(took[Math.floor(took.length * 0.9)]).toBeLessThan(150)
})

const prompts: [name: string, prompt: string][] = [
  ['markup', '<span size="999999">&amp; <b>bold</i> & "quotes" \'n\' </span> <!-- ]]> <?xml?>'],
  ['emoji', '👩‍👩‍👧‍👦 🏳️‍🌈 🇨🇭 😀 ☃️'.repeat(20)],
  ['right to left', 'مرحبا بالعالم שלום עולם \u202E reversed \u2066 isolated'],
  ['han, kana, hangul, thai, devanagari', '猫が自転車に乗る 고양이가 자전거를 แมวขี่จักรยาน बिल्ली'],
  ['ten thousand letters', 'x'.repeat(10_000)],
  ['ten thousand words', 'ab '.repeat(3_333)],
  ['ten thousand lines', 'a\n'.repeat(5_000)],
  ['controls', 'a\0b\x01c\x07\x1b[31m\x7f\x85\u2028\u2029\r\n\td\uFFFE\uFFFF'],
  ['half a pair', 'a\uD800b\uDFFFc'],
  ['towers', `z${'\u0301\u0327\u20DD'.repeat(3_000)}`],
  ['nothing that can be seen', '\u200B\u200D\uFEFF \u00AD'],
  ['private and unassigned', '\uE000\u{F0000}\u{10FFFD}\u{E0001}\u0378'],
  ['empty', ''],
]
test.each(prompts)('a hostile prompt: %s', async (_name, prompt) => {
  for (const size of [
    { width: 320, height: 192 },
    { width: 16, height: 16 },
    { width: 2048, height: 64 },
  ]) {
    const { files, messages } = await demo.generate(
      callOf('text-to-image', { prompt, negative_prompt: prompt, ...size }),
    )
    expect(messages.at(-1)).toMatchObject({ type: 'completed' })
    expect(await sharp(files[0]).metadata()).toMatchObject(size)
  }
})

test('text in ten languages is drawn, not omitted', async () => {
  for (const [name, prompt] of prompts.slice(0, 4)) {
    const { messages } = await demo.generate(callOf('text-to-image', { prompt }))
    expect([name, messages.filter(message => message.type === 'log' && message.level === 'WARN')]).toEqual([name, []])
  }
})

test('on a machine without fonts and fontconfig the same type is drawn', async ({ skip }) => {
  skip(!hasFfmpeg)
  const folder = newFolder()
  const bare = await startDemo(['--step-ms', '0'], {
    FONTCONFIG_PATH: folder,
    FONTCONFIG_FILE: join(folder, 'none'),
    HOME: folder,
  })
  const call = { prompt: 'WORDS', output_format: 'png' as const }
  const white = async (engine: Demo) => {
    const { files, messages } = await engine.generate(callOf('text-to-image', call))
    expect(messages.filter(message => message.type === 'log' && message.level === 'WARN')).toEqual([])
    const [picture] = (await greys(files[0]!)) as [Buffer]
    return picture.filter(grey => grey > 250).length
  }
  const [here, there] = [await white(demo), await white(bare)]
  expect(here).toBeGreaterThan(300)
  expect(Math.abs(here - there) / here).toBeLessThan(0.1)
})

const wrong: [name: string, call: unknown, param: string, code: string][] = [
  ['nothing', {}, 'task', 'invalid_value'],
  ['a task of texts', { ...callOf('text-to-image'), task: 'std/score' }, 'task', 'invalid_value'],
  ['a folder that is relative', { ...callOf('text-to-image'), folder: 'here' }, 'folder', 'invalid_value'],
  ['no pixels', callOf('text-to-image', { width: 0 }), 'inputs.width', 'invalid_value'],
  ['too many pixels', callOf('text-to-image', { height: 100_000 }), 'inputs.height', 'invalid_value'],
  ['half a frame', callOf('text-to-video', { num_frames: 0.5 }), 'inputs.num_frames', 'invalid_value'],
  ['a video as a picture', callOf('text-to-video', { output_format: 'png' }), 'inputs.output_format', 'invalid_value'],
  ['a picture as a video', callOf('text-to-image', { output_format: 'mp4' }), 'inputs.output_format', 'invalid_value'],
  ['no picture', callOf('image-to-image'), 'inputs.image', 'missing_required_parameter'],
  ['no mask', callOf('inpainting', { image: '/p.png' }), 'inputs.mask', 'missing_required_parameter'],
  ['no sound', callOf('speech-to-video'), 'inputs.audio', 'missing_required_parameter'],
  ['no video', callOf('video-interpolation'), 'inputs.video', 'missing_required_parameter'],
]
test.each(wrong)('refuses %s', async (_name, call, param, code) => {
  const { status, error } = await demo.generate(call)
  expect([status, error?.code, error?.param]).toEqual([400, code, param])
  expect(await demo.health()).toEqual({ status: 'ok', running: 0 })
})

describe('calls with files', () => {
  const folder = newFolder()
  let engine: Demo
  beforeAll(async () => {
    engine = await startDemo(['--step-ms', '0'], { INFER_ENGINE_FOLDER: folder })
  })
  const send = async (call: object, ...files: Buffer[]) => {
    const headers = { 'content-type': 'application/vnd.infer.files' }
    const request = httpRequest({ socketPath: engine.socket, method: 'POST', path: '/v1/generate', headers })
    request.write(`${JSON.stringify(call)}\n`)
    request.end(Buffer.concat(files))
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    return { status: response.statusCode, type: response.headers['content-type'], bytes: await buffer(response) }
  }
  const without = ({ task, model, inputs }: GenerationCall) => ({ task, model, inputs })
  const ball = () =>
    sharp({ create: { width: 32, height: 32, channels: 3, background: 'red' } })
      .png()
      .toBuffer()

  test('inputs come with the call, results follow the answer, and nothing is left', async () => {
    const image = await ball()
    const call = callOf('image-to-image', { image: 'a.png', images: ['a.png', 'b.png'], num_images: 2 })
    const files = ['a.png', 'b.png'].map(name => ({ name, bytes: image.length }))
    const { status, type, bytes } = await send({ ...without(call), files }, image, image)
    expect([status, type]).toEqual([200, 'application/vnd.infer.files'])
    const end = bytes.indexOf('"completed"')
    const rest = bytes.subarray(bytes.indexOf('\n', end) + 1)
    const last = bytes.subarray(bytes.lastIndexOf('\n', end) + 1, bytes.indexOf('\n', end)).toString()
    const completed = EngineMessage.parse(JSON.parse(last)) as Completed
    const sizes = completed.files.map(file => file.bytes!)
    expect(rest.length).toBe(sizes[0]! + sizes[1]!)
    for (const one of [rest.subarray(0, sizes[0]), rest.subarray(sizes[0])])
      expect(await sharp(one).metadata()).toMatchObject({ format: 'png', width: 320, height: 192 })
    await vi.waitFor(() => expect(readdirSync(folder)).toEqual([]))
  })

  test.each<[what: string, change: object]>([
    ['a path as a name', { files: [{ name: '../a.png', bytes: 3 }] }],
    [
      'two files of one name',
      {
        files: [
          { name: 'a.png', bytes: 1 },
          { name: 'a.png', bytes: 2 },
        ],
      },
    ],
    ['an empty file', { files: [{ name: 'a.png', bytes: 0 }] }],
    ['fewer bytes than it says', { files: [{ name: 'a.png', bytes: 4 }] }],
    ['no list of files', { files: undefined }],
    ['a file that has not come', { inputs: { ...callOf('image-to-image').inputs, image: 'b.png' } }],
    ['a file of the machine', { inputs: { ...callOf('image-to-image').inputs, image: '/etc/hostname' } }],
  ])('refuses %s', async (_, change) => {
    const call = { ...without(callOf('image-to-image', { image: 'a.png' })), files: [{ name: 'a.png', bytes: 3 }] }
    const { status } = await send({ ...call, ...change }, Buffer.from('123'))
    expect(status).toBe(400)
    expect(readdirSync(folder)).toEqual([])
  })
})

test('every task is known', () => {
  for (const task of generationTasks) expect(() => callOf(task.slice('slug/'.length) as Short)).not.toThrow()
})

test('with a key all others are refused, and the socket belongs to its owner', async () => {
  const locked = await startDemo([], { INFER_ENGINE_KEY: 'k'.repeat(40) })
  expect((await locked.ask('POST', '/v1/generate', callOf('text-to-image'))).status).toBe(401)
  const authorization = `Bearer ${'k'.repeat(40)}`
  expect((await locked.ask('POST', '/v1/generate', callOf('text-to-image'), { authorization })).status).toBe(200)
  expect(statSync(locked.socket).mode & 0o777).toBe(0o600)
})

test('SIGTERM ends running calls with the reason, and the engine with status 0', async ({ skip }) => {
  skip(!hasFfmpeg)
  const ending = await startDemo(['--step-ms', '60000'])
  const { response } = await ending.begin(long())
  await expect.poll(() => children(ending)).toEqual(['ffmpeg'])
  ending.child.kill('SIGTERM')
  const lines = (await text(response)).trimEnd().split('\n')
  expect(JSON.parse(lines.at(-1)!)).toEqual({
    type: 'failed',
    error: { message: 'The engine is stopping.', invalid: false },
  })
  expect(await ending.exited).toEqual([0, null])
  expect(existsSync(ending.socket)).toBe(false)
})

test.each([
  [[], 'Give either --socket'],
  [['--port', '1', '--socket', '/tmp/s'], 'Give either --socket'],
  [['--port', '0', '--step-ms', '-1'], 'step-ms'],
])(
  'refuses to start with %j',
  async (flags, message) => {
    await expect(startDemo(flags.includes('--port') ? flags : ['--port', '0', ...flags])).rejects.toThrow(message)
  },
  30_000,
)
