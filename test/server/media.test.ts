import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { type AddressInfo, createServer as createSocketServer, type Server as SocketServer } from 'node:net'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { text } from 'node:stream/consumers'
import { brotliCompressSync, deflateSync } from 'node:zlib'
import sharp from 'sharp'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fetchRefusal } from '../../core/media/fetch.ts'
import { fakeModel, startApp, type TestApp } from '../_app.ts'
import { hasFfmpeg } from '../_ffmpeg.ts'
import { blackPng, chunk, noise, withSegment } from '../core/cpu/_pictures.ts'

/** On 127.0.0.1 a server counts connections; on 127.0.0.2 is a site from which fetching is allowed. */
let app: TestApp
let canary: SocketServer
let connections = 0
let site: Server
let port: number
let content: Buffer = Buffer.alloc(0)
/** What the model `hosted` was sent last: the site plays its server. */
let engineBody = ''
const chatAnswer = JSON.stringify({
  choices: [{ index: 0, message: { role: 'assistant', content: 'a cat' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 1, completion_tokens: 2 },
})
const picture = await noise(64, 48).png().toBuffer()

beforeAll(async () => {
  canary = createSocketServer(socket => {
    connections++
    socket.destroy()
  }).listen(0, '127.0.0.1')
  await once(canary, 'listening')
  port = (canary.address() as AddressInfo).port
  site = createServer((request, response) => {
    if (request.method === 'POST') {
      void text(request).then(body => {
        engineBody = body
        response.writeHead(200, { 'content-type': 'application/json' }).end(chatAnswer)
      })
      return
    }
    const to = new URL(request.url!, 'http://site').searchParams.get('to')
    if (to) response.writeHead(302, { location: to }).end()
    else response.end(content)
  }).listen(port, '127.0.0.2')
  await once(site, 'listening')
  app = await startApp({
    models: [
      fakeModel('painter', [], {
        tasks: [
          'slug/image-to-image',
          'slug/inpainting',
          'slug/image-to-video',
          'slug/speech-to-video',
          'slug/video-interpolation',
        ],
      }),
      fakeModel('sees'),
      {
        id: 'hosted',
        engine: 'remote',
        url: `http://127.0.0.2:${port}/v1`,
        protocol: 'openai',
        upstream_id: 'hosted',
        tasks: ['std/chat-completion'],
        features: ['images'],
      },
      fakeModel('hears', [], { tasks: ['std/audio-transcription'] }),
    ],
    media: { allowed_addresses: ['127.0.0.2'] },
  })
})
afterAll(async () => {
  canary.close()
  site.close()
  await app[Symbol.asyncDispose]()
})

interface Answer {
  status: number
  text: string
  error: { code: string; message: string; param: string | null }
}
async function ask(path: string, body: object): Promise<Answer> {
  const response = await app.fetch(path, { body })
  const text = await response.text()
  return { status: response.status, text, error: (JSON.parse(text) as { error: Answer['error'] }).error }
}

const image = `data:image/png;base64,${picture.toString('base64')}`
/** Every field that takes an address, with the other inputs of its task. */
const fields: [task: string, field: string, others: object][] = [
  ['image-to-image', 'image_url', {}],
  ['inpainting', 'image_url', { mask_url: image }],
  ['inpainting', 'mask_url', { image_url: image }],
  ['image-to-video', 'image_url', {}],
  ['speech-to-video', 'image_url', { audio_url: 'data:audio/wav;base64,AAAA' }],
  ['speech-to-video', 'audio_url', { image_url: image }],
  ['video-interpolation', 'video_url', {}],
]
const forms = (): string[] => [
  `http://127.0.0.1:${port}/`,
  `http://2130706433:${port}/`,
  `http://[::ffff:127.0.0.1]:${port}/`,
  `http://localhost:${port}/`,
  `http://127.0.0.2:${port}@127.0.0.1:${port}/`,
  `http://127.0.0.1:${port}\\@127.0.0.2:${port}/`,
  `http://127.0.0.2:${port}/?to=http://127.0.0.1:${port}/`,
  `http://127.0.0.2:${port}/?to=http://localhost:${port}/`,
  'http://169.254.169.254/latest/meta-data/',
  'http://no-such-host.invalid/',
]

const refusable = fields.filter(([task]) => hasFfmpeg || task !== 'video-interpolation')
test.each(refusable)(
  '%s: no %s reaches a private address, and the message is always the same',
  async (task, field, others) => {
    for (const form of forms()) {
      const body = { prompt: 'a cat', ...others, [field]: form }
      const { status, error, text } = await ask(`/slug/painter/${task}`, body)
      expect([form, status, error.code, error.message, error.param]).toEqual([
        form,
        400,
        'url_fetch_failed',
        fetchRefusal,
        field,
      ])
      expect(text).not.toContain('127.0.0')
    }
    expect(connections).toBe(0)
  },
)

test.each<[string, (url: string) => [path: string, body: object]]>([
  [
    'the job API',
    url => [
      '/api/jobs',
      { task: 'slug/image-to-image', model_id: 'painter', inputs: { prompt: 'a cat', image_url: url } },
    ],
  ],
  ['fal', url => ['/fal/queue/painter/image-to-image', { prompt: 'a cat', image_url: url }]],
  ['Replicate', url => ['/replicate/v1/models/local/painter/predictions', { input: { prompt: 'a cat', image: url } }]],
  ['image edits', url => ['/std/v1/images/edits', { model: 'painter', prompt: 'a cat', images: [{ image_url: url }] }]],
  ['videos', url => ['/std/v1/videos', { model: 'painter', prompt: 'a cat', input_reference: { image_url: url } }]],
  [
    'responses',
    url => [
      '/std/v1/responses',
      { model: 'sees', input: [{ role: 'user', content: [{ type: 'input_image', image_url: url }] }] },
    ],
  ],
  [
    'Anthropic',
    url => [
      '/anthropic/v1/messages',
      {
        model: 'sees',
        max_tokens: 9,
        messages: [{ role: 'user', content: [{ type: 'image', source: { type: 'url', url } }] }],
      },
    ],
  ],
  ['transcriptions', url => ['/std/v1/audio/transcriptions', { model: 'hears', url }]],
])('nor does a body sent to %s', async (_, request) => {
  for (const form of forms()) {
    const { status, text } = await ask(...request(form))
    expect([form, Math.floor(status / 100), text.includes(fetchRefusal)]).toEqual([form, 4, true])
  }
  expect(connections).toBe(0)
})

test('no refused request became a job, and an allowed address is fetched', async () => {
  const jobs = async () => ((await (await app.fetch('/api/jobs')).json()) as { jobs: unknown[] }).jobs
  expect(await jobs()).toEqual([])
  content = picture
  const body = { prompt: 'a cat', image_url: `http://127.0.0.2:${port}/cat` }
  expect((await ask('/slug/painter/image-to-image', body)).status).toBe(202)
  expect(await jobs()).toHaveLength(1)
})

describe('an image inside a request', () => {
  const dataUrl = (bytes: Buffer) => `data:image/png;base64,${bytes.toString('base64')}`
  const chat = (url: string) => ({
    model: 'hosted',
    messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }],
  })
  const surfaces: [name: string, (bytes: Buffer) => [path: string, body: object]][] = [
    ['chat', bytes => ['/std/v1/chat/completions', chat(dataUrl(bytes))]],
    [
      'responses',
      bytes => [
        '/std/v1/responses',
        { model: 'hosted', input: [{ role: 'user', content: [{ type: 'input_image', image_url: dataUrl(bytes) }] }] },
      ],
    ],
    [
      'Anthropic',
      bytes => [
        '/anthropic/v1/messages',
        {
          model: 'hosted',
          max_tokens: 9,
          messages: [
            {
              role: 'user',
              content: [
                {
                  type: 'image',
                  source: { type: 'base64', media_type: 'image/png', data: bytes.toString('base64') },
                },
              ],
            },
          ],
        },
      ],
    ],
    [
      'Ollama',
      bytes => [
        '/ollama/api/chat',
        {
          model: 'hosted',
          stream: false,
          messages: [{ role: 'user', content: 'What?', images: [bytes.toString('base64')] }],
        },
      ],
    ],
    ['jobs', bytes => ['/api/jobs', { task: 'std/chat-completion', model_id: 'hosted', inputs: chat(dataUrl(bytes)) }]],
  ]
  async function answerOf([path, body]: [path: string, body: object]): Promise<Answer> {
    const answer = await ask(path, body)
    const { id } = JSON.parse(answer.text) as { id?: string }
    return path === '/api/jobs'
      ? { ...answer, text: await (await app.fetch(`/api/jobs/${id}?wait=10`)).text() }
      : answer
  }
  const camera = noise()
    .withMetadata({ orientation: 6 })
    .withExif({ IFD0: { Copyright: 'taken at home' }, IFD3: { GPSLatitudeRef: 'N' } })
    .jpeg()
    .toBuffer()

  test.each(surfaces)('reaches an engine upright and without its metadata, of %s', async (_, request) => {
    engineBody = ''
    expect((await answerOf(request(await camera))).text).toContain('a cat')
    const [, sent = ''] = /data:image\/jpeg;base64,([^"]*)/.exec(engineBody) ?? []
    const image = Buffer.from(sent, 'base64')
    expect(image.includes('taken at home')).toBe(false)
    const { width, height, exif, orientation } = await sharp(image).metadata()
    expect({ width, height, exif, orientation }).toEqual({ width: 200, height: 320 })
  })

  const refused: [bytes: Buffer, message: RegExp][] = [
    [Buffer.from('<!doctype html><p>sign in'), /is an SVG or another text in XML|is no image/],
    [Buffer.from('BM-garbage'), /is a BMP; it must be/],
    [blackPng(20_000, 20_000), /is 20000 × 20000 pixels/],
    [picture.subarray(0, 1_000), /is damaged or cut short/],
  ]
  test.each(surfaces)('is refused by name if it is none, of %s', async (surface, request) => {
    for (const [bytes, message] of refused) {
      engineBody = ''
      const { status, text } = await answerOf(request(bytes))
      expect([status, text, engineBody]).toEqual([surface === 'jobs' ? 202 : 400, expect.stringMatching(message), ''])
    }
  })
})

describe('decompression bombs', () => {
  const big = deflateSync(Buffer.alloc(100 << 20), { level: 9 })
  const lying = Buffer.concat([
    picture.subarray(0, 16),
    Buffer.from([0, 0, 0x75, 0x30, 0, 0, 0x75, 0x30]),
    picture.subarray(24),
  ])

  test('are refused quickly, with little memory and without blocking the event loop', {
    timeout: 120_000,
  }, async () => {
    const jpeg = await noise(2000, 1500).jpeg().toBuffer()
    const all: [string, Buffer][] = [
      ['900 million pixels', blackPng(30_000, 30_000)],
      ['a size that is not true', lying],
      ['half a JPEG', jpeg.subarray(0, jpeg.length / 2)],
      ['100 MB of nothing, compressed', brotliCompressSync(Buffer.alloc(100 << 20), { params: {} })],
      ['an archive', Buffer.concat([Buffer.from('PK\x03\x04'), big])],
      ['half a GIF', (await noise(640, 480).gif().toBuffer()).subarray(0, 50_000)],
      [
        'an SVG that reads files',
        Buffer.from('<svg xmlns:xlink="http://www.w3.org/1999/xlink"><image xlink:href="file:///etc/passwd"/></svg>'),
      ],
      ['a picture and then an endless rest', Buffer.concat([picture, Buffer.alloc(11 << 20)])],
      ['a damaged picture with much EXIF', withSegment(jpeg.subarray(0, 5000), 0xe1, Buffer.alloc(65_000, 0xff))],
      [
        'a picture whose text grows, cut',
        blackPng(64, 64, [chunk('zTXt', Buffer.concat([Buffer.from('a\0\0'), big]))]).subarray(0, -40),
      ],
    ]
    const send = async (bytes: Buffer) => {
      content = bytes
      return ask('/slug/painter/image-to-image', { prompt: 'a cat', image_url: `http://127.0.0.2:${port}/bomb` })
    }
    await send(jpeg.subarray(0, jpeg.length - 100))
    const before = process.memoryUsage.rss()
    let most = before
    const watching = setInterval(() => (most = Math.max(most, process.memoryUsage.rss())), 5)
    const lag = monitorEventLoopDelay({ resolution: 5 })
    lag.enable()
    for (const [name, bytes] of all) {
      const { status, error } = await send(bytes)
      expect([name, status, error.code, error.param]).toEqual([name, 400, 'invalid_image', 'image_url'])
    }
    lag.disable()
    clearInterval(watching)
    const [grown, lagMs] = [(most - before) / 1e6, lag.percentile(99) / 1e6]
    process.stdout.write(`bombs: memory +${grown.toFixed(0)} MB, loop lag p99 ${lagMs.toFixed(0)} ms\n`)
    expect(grown).toBeLessThan(150)
    expect(lagMs).toBeLessThan(250)
  })

  const bomb = `data:image/png;base64,${blackPng(30_000, 30_000).toString('base64')}`
  test.each<[path: string, body: object]>([
    ['/replicate/v1/models/local/painter/predictions', { input: { prompt: 'a cat', image: bomb } }],
    ['/std/v1/images/edits', { model: 'painter', prompt: 'a cat', images: [{ image_url: bomb }] }],
    ['/std/v1/videos', { model: 'painter', prompt: 'a cat', input_reference: { image_url: bomb } }],
  ])('are refused by %s', async (path, body) => {
    const { status, error } = await ask(path, body)
    expect([status, error.code]).toEqual([400, 'invalid_image'])
  })
})
