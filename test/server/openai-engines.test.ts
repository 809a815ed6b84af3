import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import sharp from 'sharp'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp } from '../_app.ts'
import { hasFfmpeg } from '../_ffmpeg.ts'
import { ask, type Json, small } from './surfaces/slug/_painter.ts'

/**
 * Images and videos of servers with OpenAI's routes, as callers see them, through the whole product. The fake server behaves
 * as vLLM-Omni, SGLang-Diffusion and OpenAI do when something goes wrong.
 */

interface Seen {
  line: string
  type: string
  body: string
  key: string | undefined
}
const png = await sharp({ create: { width: 64, height: 64, channels: 3, background: 'teal' } })
  .png()
  .toBuffer()
const b64 = png.toString('base64')
const folder = mkdtempSync(join(tmpdir(), 'infer-video-'))
/** Four seconds with 8 frames a second. */
function video(): Buffer {
  const path = join(folder, 'video.mp4')
  execFileSync('ffmpeg', ['-v', 'error', '-f', 'lavfi', '-i', 'color=teal:s=64x64:r=8:d=4', '-y', path])
  return readFileSync(path)
}
const mp4 = hasFfmpeg ? video() : Buffer.from('\0\0\0\x18ftypisom\0\0\x02\0isomiso2', 'latin1')
rmSync(folder, { recursive: true })

let seen: Seen[] = []
type Reply = (line: string, response: ServerResponse, times: number) => void
let reply: Reply
const counts = new Map<string, number>()
const server = createServer((request: IncomingMessage, response: ServerResponse) => {
  const parts: Buffer[] = []
  request.on('data', (part: Buffer) => parts.push(part))
  request.on('end', () => {
    const line = `${request.method} ${request.url}`
    const body = Buffer.concat(parts).toString('latin1')
    seen.push({ line, type: request.headers['content-type'] ?? '', body, key: request.headers.authorization })
    counts.set(line, (counts.get(line) ?? 0) + 1)
    reply(line, response, counts.get(line)!)
  })
})
const json = (response: ServerResponse, value: object, status = 200) =>
  void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))

let app: TestApp
beforeAll(async () => {
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
  const hosted = { engine: 'remote', url, protocol: 'openai', api_key_env: 'PATH', dispatch_wait_ms: '5s' }
  app = await startApp({
    models: [
      {
        id: 'hosted',
        ...hosted,
        upstream_id: 'gpt-image-1',
        tasks: ['slug/text-to-image', 'slug/image-to-image'],
        input_images: 4,
        extra_params: ['style'],
      },
      { id: 'films', ...hosted, upstream_id: 'sora-2', tasks: ['slug/text-to-video', 'slug/image-to-video'] },
    ],
    limits: { sync_wait: '20s' },
  })
})
afterAll(async () => {
  await app[Symbol.asyncDispose]()
  server.closeAllConnections()
  server.close()
})
afterEach(() => {
  seen = []
  counts.clear()
})

const lines = () => seen.map(({ line }) => line)
const image = (body: object = {}) =>
  ask(app, '/slug/hosted/text-to-image', { body: { ...small, sync_mode: true, ...body } })
const film = (body: object = {}, task = 'text-to-video') =>
  ask(app, `/slug/films/${task}`, { body: { ...small, num_frames: 32, fps: 8, sync_mode: true, ...body } })
const dataUrl = `data:image/png;base64,${b64}`

test('an image: only fields of OpenAI and those of the configuration, the key, and the rewritten prompt', async () => {
  reply = (_line, response) => json(response, { data: [{ b64_json: b64, revised_prompt: 'a grey cat' }] })
  const answer = await image({ style: 'vivid' })
  expect([answer.status, answer.body.prompt, answer.body.images?.length]).toEqual([200, 'a grey cat', 1])
  expect(lines()).toEqual(['POST /v1/images/generations'])
  expect(seen[0]!.key).toBe(`Bearer ${process.env.PATH}`)
  expect(JSON.parse(seen[0]!.body)).toEqual({
    model: 'gpt-image-1',
    prompt: 'a cat',
    n: 1,
    size: '64x64',
    style: 'vivid',
  })
})

test('several images, by base64 and by a URL of the server itself', async () => {
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  reply = (line, response) =>
    line.startsWith('GET')
      ? void response.writeHead(200, { 'content-type': 'image/png' }).end(png)
      : json(response, { data: [{ b64_json: b64 }, { url: `${origin}/v1/images/a/content` }, { url: '/files/b.png' }] })
  const answer = await image({ num_images: 3 })
  expect([answer.status, answer.body.images?.length]).toEqual([200, 3])
  expect(lines().slice(1)).toEqual(['GET /v1/images/a/content', 'GET /files/b.png'])
})

test('422 with the list of FastAPI is the mistake of the caller, with its text', async () => {
  const detail = [{ loc: ['body', 'size'], msg: 'Invalid size format' }]
  reply = (_line, response) => json(response, { detail }, 422)
  const answer = await image()
  expect([answer.status, answer.body.error.code]).toEqual([400, 'invalid_value'])
  expect(answer.body.error.message).toContain('size: Invalid size format')
})

test('a negative prompt that the service would not get is refused', async () => {
  reply = (_line, response) => json(response, { data: [{ b64_json: b64 }] })
  const answer = await image({ negative_prompt: 'dogs' })
  expect([answer.status, answer.body.error.code]).toEqual([400, 'unsupported_parameter'])
  expect(lines()).toEqual([])
})

test('an edit is a form, with image[] for several images', async () => {
  reply = (_line, response) => json(response, { data: [{ b64_json: b64 }] })
  const one = await ask(app, '/slug/hosted/image-to-image', { body: { ...small, image_url: dataUrl, sync_mode: true } })
  const two = await ask(app, '/std/v1/images/edits', {
    body: { model: 'hosted', prompt: 'a cat', images: [{ image_url: dataUrl }, { image_url: dataUrl }] },
  })
  expect([one.status, two.status, two.text]).toEqual([200, 200, expect.any(String)])
  expect(lines()).toEqual(['POST /v1/images/edits', 'POST /v1/images/edits'])
  const [single, several] = seen
  expect(single!.type).toMatch(/^multipart\/form-data; boundary=/)
  expect(single!.body).toMatch(/name="image"; filename="image-1\.\w+"\r\ncontent-type: image\/\w+\r\n\r\n/)
  expect(single!.body).toMatch(/name="prompt"\r\n\r\na cat\r\n/)
  expect(several!.body.match(/name="image\[\]"/g)).toHaveLength(2)
})

/** A server for one video; the states are answered one after another, the last one again and again. */
function making(states: Json[], content: (response: ServerResponse, times: number) => void): Reply {
  return (line, response, times) => {
    if (line === 'POST /v1/videos') return json(response, { id: 'video_1', object: 'video', status: 'queued' })
    if (line === 'GET /v1/videos/video_1') {
      const state = states[Math.min(times, states.length) - 1]
      return state === 'cut' ? void response.destroy() : json(response, { id: 'video_1', ...state })
    }
    if (line === 'GET /v1/videos/video_1/content') return content(response, times)
    return json(response, { id: 'video_1', deleted: true })
  }
}
const whole = (response: ServerResponse) => void response.writeHead(200, { 'content-type': 'video/mp4' }).end(mp4)
const done = [
  { status: 'queued', progress: 0 },
  { status: 'in_progress', progress: 0 },
  { status: 'completed', progress: 100 },
]

test('a video: created with fields of OpenAI, polled, fetched, deleted', async () => {
  reply = making(done, whole)
  const answer = await film()
  expect([answer.status, answer.text]).toEqual([200, expect.stringContaining('video.mp4')])
  const polls = Array.from({ length: 3 }, () => 'GET /v1/videos/video_1')
  expect(lines()).toEqual(['POST /v1/videos', ...polls, 'GET /v1/videos/video_1/content', 'DELETE /v1/videos/video_1'])
  const names = [...seen[0]!.body.matchAll(/name="(\w+)"\r\n\r\n(.*)\r\n/g)].map(([, name, value]) => [name, value])
  expect(names).toEqual([
    ['model', 'sora-2'],
    ['prompt', 'a cat'],
    ['size', '64x64'],
    ['seconds', '4'],
  ])
})

test('a video from an image has it as input_reference', async () => {
  reply = making(done, whole)
  expect((await film({ image_url: dataUrl }, 'image-to-video')).status).toBe(200)
  expect(seen[0]!.body).toMatch(/name="input_reference"; filename="image-1\.\w+"/)
})

test.each<[what: string, states: Json[], content: Parameters<typeof making>[1]]>([
  ['a cut connection while it is polled', ['cut', 'cut', ...done], whole],
  [
    'content that is not there yet',
    done,
    (response, times) =>
      times < 3 ? json(response, { detail: 'Not ready' }, times === 1 ? 404 : 409) : whole(response),
  ],
  [
    'content that breaks off',
    done,
    (response, times) =>
      times > 1
        ? whole(response)
        : void response.writeHead(200, { 'content-length': mp4.length + 500 }).write(mp4, () => response.destroy()),
  ],
])('a video survives %s', async (_what, states, content) => {
  reply = making(states, content)
  const answer = await film()
  expect([answer.status, answer.text]).toEqual([200, expect.stringContaining('video.mp4')])
  expect(lines().filter(line => line.startsWith('POST'))).toHaveLength(1)
})

test.each<[what: string, state: Json, code: string]>([
  [
    'an error of the engine',
    { status: 'failed', error: { code: 'server_error', message: 'CUDA error' } },
    'worker_error',
  ],
  [
    'a forbidden prompt',
    { status: 'failed', error: { code: 'moderation_blocked', message: 'Not this.' } },
    'invalid_value',
  ],
])('a video that failed by %s', async (_what, state, code) => {
  reply = making([state], whole)
  const answer = await film()
  expect(answer.body.error.code).toBe(code)
  expect(answer.text).not.toContain('CUDA')
  expect(lines().at(-1)).toBe('DELETE /v1/videos/video_1')
})

test('a cancelled video is deleted on the server', async () => {
  let polled = () => {}
  const isPolled = new Promise<void>(resolve => (polled = resolve))
  let deleted = () => {}
  const isDeleted = new Promise<void>(resolve => (deleted = resolve))
  const making1 = making([{ status: 'in_progress', progress: 10 }], whole)
  reply = (line, response, times) => {
    if (line === 'GET /v1/videos/video_1') polled()
    if (line.startsWith('DELETE')) deleted()
    making1(line, response, times)
  }
  const { body } = await ask(app, '/slug/films/text-to-video', { body: { ...small, num_frames: 32, fps: 8 } })
  await isPolled
  await ask(app, `/slug/requests/${body.request_id}/cancel`, { method: 'PUT' })
  await isDeleted
  expect(lines()).not.toContain('GET /v1/videos/video_1/content')
})
