import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import sharp from 'sharp'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { fetchRefusal } from '../../../../core/media/fetch.ts'
import { startApp, type TestApp } from '../../../_app.ts'
import { noise } from '../../../core/cpu/_pictures.ts'
import { openScriptedEngine, type ScriptedEngine } from '../../_scripted-engine.ts'

let app: TestApp
let engine: ScriptedEngine
let site: Server
let address: string
let seen: { messages: { content: { image_url: { url: string } }[] }[] } | undefined
const picture = await noise(64, 48).png().toBuffer()

beforeAll(async () => {
  site = createServer((request, response) => {
    if (request.url === '/broken') response.end('no picture')
    else response.end(picture)
  }).listen(0, '127.0.0.2')
  await once(site, 'listening')
  address = `http://127.0.0.2:${(site.address() as AddressInfo).port}`
  engine = await openScriptedEngine(({ body }, response) => {
    seen = body as never
    const message = { role: 'assistant', content: 'A picture.' }
    const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }
    response.setHeader('content-type', 'application/json')
    response.end(
      JSON.stringify({
        id: 'x',
        object: 'chat.completion',
        created: 1,
        model: 'm',
        choices: [{ index: 0, message, finish_reason: 'stop' }],
        usage,
      }),
    )
  })
  app = await startApp({
    models: [engine.model('sees', { tasks: ['std/chat-completion'], features: ['images', 'audio'] })],
    media: { allowed_addresses: ['127.0.0.2'] },
  })
})
afterAll(async () => {
  await app[Symbol.asyncDispose]()
  await engine[Symbol.asyncDispose]()
  site.close()
})

const ask = (...urls: string[]) =>
  app.fetch('/std/v1/chat/completions', {
    body: {
      model: 'sees',
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'What is it?' },
            ...urls.map(url => ({ type: 'image_url', image_url: { url } })),
          ],
        },
      ],
    },
  })

test('an image named by its address reaches the engine inside the request, re-encoded', async () => {
  expect((await ask(`${address}/a.png`, `${address}/b.png`)).status).toBe(200)
  const urls = seen!.messages[0]!.content.flatMap(part => (part.image_url ? [part.image_url.url] : []))
  expect(urls).toHaveLength(2)
  for (const url of urls) {
    expect(url).toMatch(/^data:image\/png;base64,/)
    const { width, height } = await sharp(Buffer.from(url.split(',')[1]!, 'base64')).metadata()
    expect([width, height]).toEqual([64, 48])
  }
})

test.for([
  ['a private address', 'http://127.0.0.1:1/a.png', 'url_fetch_failed', fetchRefusal],
  ['another scheme', 'ftp://127.0.0.2/a.png', 'invalid_value', "'messages[0].content[1].image_url.url'"],
  ['a file that is none of ours', 'file-01M808117655Q1HXFG76NCS34Q', 'not_found', 'does not exist'],
] as const)('%s is refused, and no engine is called', async ([, url, code, message]) => {
  seen = undefined
  const response = await ask(url)
  const { error } = (await response.json()) as { error: { code: string; message: string; param: string } }
  expect([response.status >= 400 && response.status < 500, error.code, error.param]).toEqual([
    true,
    code,
    'messages[0].content[1].image_url.url',
  ])
  expect(error.message).toContain(message)
  expect(seen).toBeUndefined()
})

test('a file that is not an image is refused', async () => {
  const response = await ask(`${address}/broken`)
  expect([response.status, ((await response.json()) as { error: { code: string } }).error.code]).toEqual([
    400,
    'invalid_image',
  ])
})

test('at most sixteen are fetched', async () => {
  const response = await ask(...Array.from({ length: 17 }, () => `${address}/a.png`))
  expect([response.status, ((await response.json()) as { error: { code: string } }).error.code]).toEqual([
    400,
    'invalid_value',
  ])
})

type Content = { type: string; text?: string; image_url?: { url: string } }[]
const askWith = (part: object) =>
  app.fetch('/std/v1/chat/completions', { body: { model: 'sees', messages: [{ role: 'user', content: [part] }] } })
const contentSeen = () => seen!.messages[0]!.content as Content

async function store(name: string, bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const form = new FormData()
  form.append('purpose', 'user_data')
  form.append('file', new Blob([bytes]), name)
  const headers = { authorization: `Bearer ${app.secret}` }
  const answer = await fetch(`${app.url}/v1/files`, { method: 'POST', body: form, headers })
  return ((await answer.json()) as { id: string }).id
}

test('a stored image is sent by its id, and a text file by its id or inline as its text', async () => {
  const image = await store('a.png', new Uint8Array(picture))
  expect((await askWith({ type: 'image_url', image_url: { url: image } })).status).toBe(200)
  expect(contentSeen()[0]!.image_url!.url).toMatch(/^data:image\/png;base64,/)
  const text = 'a "quoted" line\n$& ${x} äöü\n'
  const notes = await store('notes.md', new TextEncoder().encode(text))
  expect((await askWith({ type: 'file', file: { file_id: notes } })).status).toBe(200)
  expect(contentSeen()).toEqual([{ type: 'text', text: `File notes.md:\n\n${text}` }])
  for (const prefix of ['', 'data:text/csv;base64,']) {
    const file_data = prefix + Buffer.from(text).toString('base64')
    expect((await askWith({ type: 'file', file: { file_data, filename: 'a.csv' } })).status).toBe(200)
    expect(contentSeen()).toEqual([{ type: 'text', text: `File a.csv:\n\n${text}` }])
  }
})

test('stored audio is sent by its id', async () => {
  const bytes = Buffer.alloc(1_000_003, 'RIFF')
  const data = await store('a.wav', new Uint8Array(bytes))
  expect((await askWith({ type: 'input_audio', input_audio: { data, format: 'wav' } })).status).toBe(200)
  expect(contentSeen()).toEqual([
    { type: 'input_audio', input_audio: { data: bytes.toString('base64'), format: 'wav' } },
  ])
  const absent = { data: 'file-01K8Q6Z4M3T8V9W0X1Y2Z3A4B5', format: 'wav' }
  const refused = await askWith({ type: 'input_audio', input_audio: absent })
  expect([refused.status, ((await refused.json()) as { error: { param: string } }).error.param]).toEqual([
    404,
    'messages[0].content[0].input_audio.data',
  ])
})

test.each([
  ['a PDF', { file_data: Buffer.from('%PDF-1.7 x').toString('base64'), filename: 'a.pdf' }, 'unsupported_parameter'],
  ['bytes', { file_data: 'AAECAwQ=', filename: 'a.bin' }, 'unsupported_parameter'],
  ['data that is no base64', { file_data: 'data:text/plain,hello' }, 'invalid_value'],
  ['neither data nor id', { filename: 'a.txt' }, 'invalid_value'],
  ['an absent file', { file_id: 'file-01K8Q6Z4M3T8V9W0X1Y2Z3A4B5' }, 'not_found'],
  ['no id', { file_id: 'http://example.com/' }, 'invalid_value'],
])('a file part with %s is refused by name', async (_, file, code) => {
  const answer = await askWith({ type: 'file', file })
  const { error } = (await answer.json()) as { error: { code: string; param: string } }
  expect([error.code, error.param]).toEqual([code, expect.stringMatching(/^messages\[0\]\.content\[0\]\.file/)])
})

test('a stored file without text is refused with its name', async () => {
  const answer = await askWith({ type: 'file', file: { file_id: await store('a.png', new Uint8Array(picture)) } })
  const { error } = (await answer.json()) as { error: { code: string; message: string } }
  expect([answer.status, error.code]).toEqual([400, 'invalid_value'])
  expect(error.message).toContain("'a.png' (image/png)")
})
