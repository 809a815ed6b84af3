import { connect } from 'node:net'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import * as fc from 'fast-check'
import { Pool } from 'undici'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { newId } from '../../core/ids.ts'
import { routeTable } from '../../server/routes.ts'
import { fakeModel, startApp, type TestApp } from '../_app.ts'

const routes = routeTable()

let app: TestApp
beforeAll(async () => {
  const painter = fakeModel('painter', [], { tasks: ['slug/text-to-image', 'slug/image-to-image'] })
  app = await startApp({ models: [fakeModel('fake'), painter] })
})
afterAll(() => app[Symbol.asyncDispose]())

const picture =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC'
const generation = {
  prompt: 'a',
  image_url: picture,
  image_size: { width: 64, height: 64 },
  num_images: 1,
  seed: 1,
  strength: 0.5,
  guidance_scale: 2,
  num_inference_steps: 4,
  output_format: 'png',
  preset: 'balanced',
}

const valid: Record<string, object> = {
  '/std/v1/chat/completions': {
    model: 'fake',
    messages: [
      { role: 'system', content: 'a' },
      { role: 'user', content: [{ type: 'text', text: 'b' }] },
    ],
    temperature: 1,
    stop: ['x'],
    tools: [{ type: 'function', function: { name: 'f', parameters: {} } }],
    response_format: { type: 'json_schema', json_schema: { name: 'n', schema: {} } },
  },
  '/std/v1/completions': {
    model: 'fake',
    prompt: ['a', 'b'],
    n: 2,
    logprobs: 1,
    stop: ['x'],
    echo: true,
    max_tokens: 4,
  },
  '/std/v1/embeddings': { model: 'fake', input: ['a', 'b'], encoding_format: 'base64', dimensions: 2 },
  '/std/v1/responses': {
    model: 'fake',
    input: [
      { role: 'user', content: [{ type: 'input_text', text: 'b' }] },
      { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' },
      { type: 'function_call_output', call_id: 'c', output: [{ type: 'input_text', text: 'b' }] },
      { type: 'reasoning', summary: [{ type: 'summary_text', text: 'b' }] },
    ],
    tools: [{ type: 'function', name: 'f', parameters: {} }],
    tool_choice: { type: 'allowed_tools', mode: 'auto', tools: [{ type: 'function', name: 'f' }] },
    text: { format: { type: 'json_schema', name: 's', schema: {} } },
    reasoning: { effort: 'low', summary: 'auto' },
    metadata: { a: 'b' },
  },
  '/std/v1/rerank': { model: 'fake', query: 'q', documents: ['a', { text: 'b' }], top_n: 1, return_documents: true },
  '/std/v1/score': { model: 'fake', text_1: 'a', text_2: ['b', 'c'] },
  '/std/v1/moderations': { model: 'fake', input: [{ type: 'text', text: 'a' }] },
  '/std/v2/chat': {
    model: 'fake',
    messages: [{ role: 'user', content: [{ type: 'text', text: 'b' }] }],
    documents: [{ id: 'a', data: { text: 'b' } }],
    tools: [{ type: 'function', function: { name: 'f', parameters: {} } }],
  },
  '/std/v1/embed': { model: 'fake', texts: ['a'], embedding_types: ['float', 'int8'], output_dimension: 2 },
  '/std/v2/embed': { model: 'fake', texts: ['a'], embedding_types: ['float', 'int8'], output_dimension: 2 },
  '/anthropic/v1/messages': {
    model: 'fake',
    max_tokens: 4,
    system: [{ type: 'text', text: 'a' }],
    messages: [
      { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'f', input: {} }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't', content: [{ type: 'text', text: 'b' }] }] },
    ],
    tools: [{ name: 'f', input_schema: {} }],
  },
  '/anthropic/v1/messages/count_tokens': { model: 'fake', messages: [{ role: 'user', content: 'a' }] },
  '/api/jobs': {
    task: 'std/embeddings',
    model_id: 'fake',
    inputs: { input: 'a' },
    priority: 'low',
    metadata: { a: 'b' },
  },
  '/slug/**:slug': generation,
  '/slug/queue/submit/**:slug': generation,
  '/slug/requests/batch': { request_ids: [newId('q'), 'q_1'] },
  '/fal/queue/**:path': generation,
  '/fal/run/**:path': generation,
}

const nasty = fc.constantFrom<unknown>(
  null,
  true,
  -1,
  0,
  1e308,
  2 ** 53,
  1.5,
  '',
  'x',
  '\u0000',
  '\ud800',
  '__proto__',
  'a'.repeat(5000),
  [],
  {},
  [[]],
  [null],
  { __proto__: null },
  { toString: 1 },
)

/** A valid body with some of its values replaced, removed or nested. */
function mutated(body: object): fc.Arbitrary<unknown> {
  const paths: (string | number)[][] = []
  const walk = (value: unknown, path: (string | number)[]) => {
    if (path.length) paths.push(path)
    if (value !== null && typeof value === 'object')
      for (const [key, inner] of Object.entries(value)) walk(inner, [...path, Array.isArray(value) ? Number(key) : key])
  }
  walk(body, [])
  return fc
    .array(
      fc.record({
        path: fc.constantFrom(...paths),
        value: fc.oneof(nasty, fc.jsonValue({ maxDepth: 3 })),
        how: fc.constantFrom('set', 'remove', 'wrap', 'add'),
      }),
      { minLength: 1, maxLength: 3, size: 'max' },
    )
    .map(changes => {
      const copy = structuredClone(body) as Record<string, unknown>
      for (const { path, value, how } of changes) {
        let at: unknown = copy
        for (const key of path.slice(0, -1))
          at = at !== null && typeof at === 'object' ? (at as Record<string | number, unknown>)[key] : undefined
        if (at === null || typeof at !== 'object') continue
        const holder = at as Record<string | number, unknown>
        const key = path.at(-1)!
        if (how === 'set') holder[key] = value
        else if (how === 'remove') delete holder[key]
        else if (how === 'wrap') holder[key] = [holder[key]]
        else holder[`${key}x`] = value
      }
      return copy
    })
}

/** Bytes that are hardly JSON. */
const broken = (body: object) => {
  const text = JSON.stringify(body)
  return fc.oneof(
    fc.nat(text.length).map(at => text.slice(0, at)),
    fc
      .tuple(fc.nat(text.length), fc.string({ size: 'max', maxLength: 20 }))
      .map(([at, junk]) => text.slice(0, at) + junk + text.slice(at)),
    fc.uint8Array({ maxLength: 200, size: 'max' }).map(bytes => Buffer.from(bytes).toString('latin1')),
    fc.integer({ min: 1, max: 3000 }).map(depth => '['.repeat(depth)),
    fc.integer({ min: 1, max: 3000 }).map(depth => '{"a":'.repeat(depth)),
    fc.constant(`{${Array.from({ length: 11_000 }, (_, at) => `"k${at}":0`).join()}}`),
  )
}

const posts = routes.filter(({ method, body }) => body && method !== 'GET')
const perRoute = Math.ceil(10_000 / posts.length)

test('10,000 malformed bodies over every route with a body: never a 5xx, never a blocked loop', async () => {
  const pool = new Pool(app.url, { connections: 8 })
  const delay = monitorEventLoopDelay({ resolution: 10 })
  delay.enable()
  const faults: string[] = []
  const statuses: Record<string, Set<number>> = {}
  for (const route of posts) {
    const body = valid[route.path] ?? {
      name: 'x',
      scopes: ['user:read'],
      expires_in: 60,
      models: ['a'],
      overlap_seconds: 1,
    }
    const path = route.path
      .replace(':organization', app.organizationId)
      .replace(/\*\*:(slug|path)/, 'painter/image-to-image')
      .replace(':id', newId('tok'))
    const bodies = [
      ...fc
        .sample(mutated(body), { numRuns: Math.ceil(perRoute / 2), seed: 1 })
        .map(value => JSON.stringify(value) ?? ''),
      ...fc.sample(broken(body), { numRuns: Math.ceil(perRoute / 2), seed: 2 }),
    ]
    const queue = bodies[Symbol.iterator]()
    const sender = async () => {
      for (const text of queue) {
        const response = await pool.request({
          method: route.method,
          path,
          body: text,
          headers: { authorization: `Bearer ${app.secret}`, 'content-type': 'application/json' },
        })
        const answer = await response.body.text()
        ;(statuses[route.path] ??= new Set()).add(response.statusCode)
        if (response.statusCode >= 500 || (response.statusCode >= 400 && !answer.includes('"request_id"')))
          faults.push(`${response.statusCode} ${path} ${text.slice(0, 200)} → ${answer.slice(0, 200)}`)
      }
    }
    await Promise.all(Array.from({ length: 8 }, sender))
  }
  delay.disable()
  await pool.close()
  expect(faults).toEqual([])
  // Bodies that are all refused for the same reason would test little.
  for (const path of ['/slug/**:slug', '/slug/queue/submit/**:slug'])
    expect([...statuses[path]!]).toEqual(expect.arrayContaining([202, 400]))
  expect(delay.percentile(99) / 1e6).toBeLessThan(250)
})

test.each<[string, string, Record<string, string>, number, string]>([
  ['a form', 'a=b', { 'content-type': 'application/x-www-form-urlencoded' }, 415, 'unsupported_media_type'],
  ['plain text', '{}', { 'content-type': 'text/plain' }, 415, 'unsupported_media_type'],
  ['compressed', '{}', { 'content-encoding': 'gzip' }, 415, 'unsupported_media_type'],
  ['nothing at all', '', {}, 400, 'missing_required_parameter'],
])('a body that is %s is answered %i', async (_, body, headers, status, code) => {
  const response = await app.fetch('/std/v1/chat/completions', { method: 'POST', body, headers })
  expect([response.status, ((await response.json()) as { error: { code: string } }).error.code]).toEqual([status, code])
})

test('a body past the limit is 413, declared or not', async () => {
  const declared = await app.fetch('/slug/requests/batch', { body: `"${'x'.repeat(2 << 20)}"` })
  expect(declared.status).toBe(413)
  const status = await new Promise<string>((resolve, reject) => {
    const socket = connect(Number(new URL(app.url).port), '127.0.0.1', () => {
      socket.write(
        `POST /slug/requests/batch HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${app.secret}\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n`,
      )
      for (let sent = 0; sent < 2 << 20; sent += 65_536) socket.write(`10000\r\n${'x'.repeat(65_536)}\r\n`)
    })
    socket.once('data', data => resolve(data.toString().split('\r\n')[0]!))
    socket.once('error', reject)
  })
  expect(status).toContain('413')
})

test.each<[string, string, RegExp]>([
  ['no HTTP', 'hello\r\n\r\n', /^HTTP\/1\.1 400/],
  [
    'two lengths',
    'POST /api/jobs HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab',
    /^HTTP\/1\.1 400/,
  ],
  [
    'length and chunks',
    'POST /api/jobs HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n',
    /^HTTP\/1\.1 400/,
  ],
  [
    'headers of 20 KiB',
    `GET /livez HTTP/1.1\r\nhost: localhost\r\nx: ${'a'.repeat(20_000)}\r\n\r\n`,
    /^HTTP\/1\.1 431/,
  ],
  ['another host', 'GET /livez HTTP/1.1\r\nhost: evil.example\r\n\r\n', /^HTTP\/1\.1 421/],
  ['two hosts', 'GET /livez HTTP/1.1\r\nhost: localhost\r\nhost: localhost\r\n\r\n', /^HTTP\/1\.1 4/],
  ['no host', 'GET /api/me HTTP/1.0\r\n\r\n', /^HTTP\/1\.1 421/],
  [
    'a second Authorization header',
    'GET /livez HTTP/1.1\r\nhost: localhost\r\nauthorization: a\r\nauthorization: b\r\n\r\n',
    /^HTTP\/1\.1 400/,
  ],
  ['an unknown method', 'BREW /livez HTTP/1.1\r\nhost: localhost\r\n\r\n', /^HTTP\/1\.1 4/],
  ['a malformed escape', 'GET /api/jobs/%zz HTTP/1.1\r\nhost: localhost\r\n\r\n', /^HTTP\/1\.1 4/],
  ['a climb out of the path', 'GET /docs/../../etc/passwd HTTP/1.1\r\nhost: localhost\r\n\r\n', /^HTTP\/1\.1 40[04]/],
  [
    'an absolute target elsewhere',
    'GET http://evil.example/livez HTTP/1.1\r\nhost: localhost\r\n\r\n',
    /^HTTP\/1\.1 (4|200)/,
  ],
])('on the wire, %s is refused', async (_, bytes, status) => {
  const answer = await new Promise<string>((resolve, reject) => {
    const socket = connect(Number(new URL(app.url).port), '127.0.0.1', () => socket.write(bytes))
    socket.once('data', data => {
      socket.destroy()
      resolve(data.toString())
    })
    socket.once('error', reject)
  })
  expect(answer).toMatch(status)
})
