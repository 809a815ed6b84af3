import { once } from 'node:events'
import { createServer, request } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../_app.ts'
import { type OwnEngine, startEngine } from '../../_engine.ts'
import { faults } from '../../golden/openai.ts'

let engine: OwnEngine
let app: TestApp
beforeAll(async () => {
  engine = await startEngine()
  app = await startApp({
    models: [
      { id: 'm', engine: 'remote', url: `${engine.url}/v1`, concurrency: 512, no_progress: '5s' },
      { id: 'narrow', engine: 'remote', url: `${engine.url}/v1`, concurrency: 1 },
      { id: 'renamed', engine: 'remote', url: `${engine.url}/v1`, upstream_id: 'upstream/name' },
    ],
    limits: { write_deadline: '1s', stream_ping: '200ms', stream_frame: '64KiB' },
  })
})
afterAll(async () => {
  await app[Symbol.asyncDispose]()
  await engine[Symbol.asyncDispose]()
})

const ask = (content: string, more: object = {}) =>
  app.fetch('/std/v1/chat/completions', {
    body: { model: 'm', stream: true, messages: [{ role: 'user', content }], ...more },
  })
const framesOf = async (response: Response) =>
  (await response.text())
    .split('\n\n')
    .filter(frame => frame.startsWith('data: '))
    .map(frame => frame.slice(6))

test('a stream is frames of the contract, then [DONE]', async () => {
  const response = await ask('Hello')
  expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
  expect(response.headers.get('content-length')).toBeNull()
  const frames = await framesOf(response)
  expect(frames.at(-1)).toBe('[DONE]')
  const chunks = frames.slice(0, -1).map(
    frame =>
      JSON.parse(frame) as {
        id: string
        usage?: unknown
        choices: { delta: { role?: string }; finish_reason: string | null }[]
      },
  )
  for (const chunk of chunks) expect(faults('CreateChatCompletionStreamResponse', chunk)).toEqual([])
  expect(new Set(chunks.map(({ id }) => id)).size).toBe(1)
  expect(chunks[0]!.choices[0]!.delta.role).toBe('assistant')
  expect(chunks.filter(({ choices }) => choices[0]?.finish_reason).length).toBe(1)
  expect(chunks.some(chunk => 'usage' in chunk)).toBe(false)
})

test('usage comes right before [DONE] when requested, and its chunk has no choices', async () => {
  const frames = await framesOf(await ask('Hello', { stream_options: { include_usage: true } }))
  const last = JSON.parse(frames.at(-2)!) as { choices: unknown[]; usage: { completion_tokens: number } }
  expect(last.choices).toEqual([])
  expect(last.usage.completion_tokens).toBeGreaterThan(0)
})

test('every chunk has the public model name, whatever the engine calls the model', async () => {
  const frames = await framesOf(await ask('Hello', { model: 'renamed' }))
  const names = frames.slice(0, -1).map(frame => (JSON.parse(frame) as { model: string }).model)
  expect(new Set(names)).toEqual(new Set(['renamed']))
})

test.each([
  [
    'mode:no-done',
    'an engine that forgets [DONE] gets it added',
    (frames: string[]) => expect(frames.at(-1)).toBe('[DONE]'),
  ],
  [
    'mode:error-frame',
    'an error frame ends the stream in our envelope',
    (frames: string[]) => expect(errorOf(frames)).toBe('worker_error'),
  ],
  [
    'mode:break,after=3',
    'a connection that breaks in mid-stream',
    (frames: string[]) => expect(errorOf(frames)).toBe('worker_error'),
  ],
  [
    'mode:long-line,mb=1',
    'a line longer than any answer',
    (frames: string[]) => expect(errorOf(frames)).toBe('worker_error'),
  ],
])('%s: %s', async (mode, _, check) => {
  const response = await ask(mode)
  if (response.status === 200) check(await framesOf(response))
  else expect(response.status).toBe(502)
})

function errorOf(frames: string[]): string {
  expect(frames).not.toContain('[DONE]')
  const { error } = JSON.parse(frames.at(-1)!) as { error: object & { code: string } }
  expect(faults('ErrorResponse', { error })).toEqual([])
  return error.code
}

test.each(['garbage', 'half-json', 'wrong-type', 'long-line,mb=40', 'status,code=500,text=boom', 'break'])(
  'an engine that answers with %s: 502 with the reason, never a 500',
  async mode => {
    for (const stream of [false, true]) {
      const response = await ask(`mode:${mode}`, { stream })
      const text = await response.text()
      if (response.status === 200) expect(text).toContain('"code":"worker_error"')
      else expect([response.status, faults('ErrorResponse', JSON.parse(text))]).toEqual([502, []])
    }
  },
)

test.each(['nan-usage', 'negative-usage'])('%s is clamped', async mode => {
  const response = await ask(`mode:${mode}`, { stream: false })
  // NaN is not JSON: an engine that writes it has sent an invalid answer.
  if (response.status === 502) return
  const { usage } = (await response.json()) as { usage: Record<string, number> }
  expect([usage.prompt_tokens, usage.completion_tokens].every(count => count! >= 0)).toBe(true)
})

test('pauses are filled with comments', async () => {
  const response = await ask('mode:stream,tokens=2,rate=1')
  expect(await response.text()).toContain(': ping')
})

test('a disconnect of the client aborts the engine request: before the answer, in the prefill, during the stream', async () => {
  const before = (await engine.stats()).aborted
  const moments = ['mode:silent', 'mode:slow,ms=10000', 'mode:stream,tokens=100000,rate=100']
  const taken: number[] = []
  for (const [at, mode] of moments.entries())
    for (const stream of at === 2 ? [true] : [true, false]) {
      const leave = new AbortController()
      const { aborted, running } = await engine.stats()
      const pending = app
        .fetch('/std/v1/chat/completions', {
          body: { model: 'm', stream, messages: [{ role: 'user', content: mode }] },
          signal: leave.signal,
        })
        .catch(() => undefined)
      await engine.until(stats => stats.running === running + 1)
      if (at === 2) await (await pending)!.body!.getReader().read()
      const from = performance.now()
      leave.abort()
      await engine.until(stats => stats.aborted === aborted + 1)
      taken.push(performance.now() - from)
    }
  expect((await engine.stats()).aborted - before).toBe(5)
  expect(Math.max(...taken)).toBeLessThan(2_000)
  await engine.until(stats => stats.running === 0)
})

test('nothing is kept of a stream whose client disconnected', async () => {
  for (let at = 0; at < 5; at++) {
    const leave = new AbortController()
    const response = await app.fetch('/std/v1/chat/completions', {
      body: { model: 'm', stream: true, messages: [{ role: 'user', content: 'mode:stream,tokens=100000,rate=100' }] },
      signal: leave.signal,
    })
    await response.body!.getReader().read()
    leave.abort()
  }
  const open = async () => /^infer_streams (\d+)$/m.exec(await (await app.fetch('/metrics')).text())?.[1]
  await expect.poll(open).toBe('0')
})

test('a large answer may take as long as it is being read', async () => {
  // 16 MB to a reader that pauses between pieces: longer than the deadline of one second in total, never a second idle.
  const { port } = new URL(app.url)
  const body = JSON.stringify({
    model: 'm',
    input: Array.from({ length: 2000 }, (_, at) => `text ${at}`),
    encoding_format: 'float',
  })
  const [taken, ms] = await new Promise<[number, number]>((resolve, reject) => {
    let bytes = 0
    const from = performance.now()
    const req = request(
      {
        port,
        host: '127.0.0.1',
        method: 'POST',
        path: '/std/v1/embeddings',
        headers: {
          authorization: `Bearer ${app.secret}`,
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(body),
        },
      },
      res => {
        res.on('data', (chunk: Buffer) => {
          bytes += chunk.length
          res.pause()
          setTimeout(() => res.resume(), 30)
        })
        res.on('end', () => resolve([bytes - Number(res.headers['content-length']), performance.now() - from]))
        res.on('error', reject)
      },
    )
    req.on('error', reject)
    req.end(body)
  })
  expect(taken).toBe(0)
  expect(ms).toBeGreaterThan(0)
})

test('a job whose client disconnected is recorded as cancelled, with the tokens delivered', async () => {
  const leave = new AbortController()
  const response = await app.fetch('/std/v1/chat/completions', {
    body: { model: 'm', stream: true, messages: [{ role: 'user', content: 'mode:stream,tokens=100000,rate=200' }] },
    signal: leave.signal,
  })
  const id = response.headers.get('x-job-id')!
  const reader = response.body!.getReader()
  for (let read = 0; read < 5; read++) await reader.read()
  leave.abort()
  await expect
    .poll(async () => ((await (await app.fetch(`/api/jobs/${id}`)).json()) as { status: string }).status)
    .toBe('cancelled')
  const job = (await (await app.fetch(`/api/jobs/${id}`)).json()) as { usage: { output_tokens: number }; kind: string }
  expect(job.kind).toBe('sync')
  expect(job.usage.output_tokens).toBeGreaterThan(0)
})

test('a stream that is cut before its first event is sent again, unless the client has got a ping', async () => {
  let cuts = 0
  let cutAfterMs = 0
  const chunk = (delta: object, finish_reason: string | null) =>
    `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'x', choices: [{ index: 0, delta, finish_reason }] })}\n\n`
  const server = createServer((req, res) => {
    req.resume()
    res.writeHead(200, { 'content-type': 'text/event-stream' })
    if (cuts === 0) return void res.end(`${chunk({ content: 'whole' }, null)}${chunk({}, 'stop')}data: [DONE]\n\n`)
    cuts--
    res.flushHeaders()
    setTimeout(() => res.destroy(), cutAfterMs)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
  await using cutting = await startApp({
    models: [{ id: 'm', engine: 'remote', url, dispatch_wait_ms: '5s' }],
    limits: { stream_ping: '200ms' },
  })
  const said = (stream: boolean) =>
    cutting.fetch('/std/v1/chat/completions', {
      body: { model: 'm', stream, messages: [{ role: 'user', content: 'Hello' }] },
    })
  cuts = 1
  const again = await said(true)
  expect([again.status, cuts]).toEqual([200, 0])
  const text = await again.text()
  expect(text).toContain('whole')
  expect(text).not.toContain('error')
  cuts = 9
  const failed = await said(true)
  expect([failed.status, cuts]).toEqual([502, 6])
  expect(await failed.json()).toMatchObject({ error: { code: 'worker_error' } })
  cuts = 1
  cutAfterMs = 700
  expect(await (await said(true)).text()).toMatch(/^: ping\n[^]*"code":"worker_error"/)
  server.close()
})

/** An engine that writes an endless answer as fast as it is read, and counts disconnected clients. */
async function fireHose() {
  const frame = Buffer.from(
    `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'hose', choices: [{ index: 0, delta: { role: 'assistant', content: 'x'.repeat(8_000) }, finish_reason: null }] })}\n\n`,
  )
  let gone = 0
  const server = createServer((req, res) => {
    req.resume()
    res.writeHead(200, { 'content-type': 'text/event-stream' })
    const pour = () => {
      while (!res.destroyed && res.write(frame));
    }
    res.on('drain', pour).once('close', () => gone++)
    pour()
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    gone: () => gone,
    close: () => server.close(),
  }
}

test('200 readers that never read: memory is bounded, all are cut, their engine requests aborted, others served', async () => {
  const hose = await fireHose()
  await using flooded = await startApp({
    models: [
      { id: 'hose', engine: 'remote', url: `${hose.url}/v1`, concurrency: 512 },
      { id: 'm', engine: 'remote', url: `${engine.url}/v1` },
    ],
    limits: { write_deadline: '1s' },
  })
  const body = JSON.stringify({ model: 'hose', stream: true, messages: [{ role: 'user', content: 'x' }] })
  const before = process.memoryUsage().rss
  const sockets = Array.from({ length: 200 }, () => {
    const socket = connect({ port: Number(new URL(flooded.url).port), host: '127.0.0.1' }, () => {
      socket.pause()
      socket.write(
        `POST /std/v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${flooded.secret}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
      )
    })
    return socket.on('error', () => {})
  })
  const served = await flooded.fetch('/std/v1/chat/completions', {
    body: { model: 'm', messages: [{ role: 'user', content: 'Hello' }] },
  })
  expect(served.status).toBe(200)
  await expect.poll(hose.gone, { timeout: 60_000 }).toBe(200)
  // Both ends and the engine live in this process, so the figure is three times that of the server.
  expect((process.memoryUsage().rss - before) / 2 ** 20).toBeLessThan(512)
  for (const socket of sockets) socket.destroy()
  hose.close()
})

test.each<[api: string, path: string, body: object, end: RegExp]>([
  ['chat', '/std/v1/chat/completions', {}, /data: \[DONE\]\n\n$/],
  ['Anthropic', '/anthropic/v1/messages', { max_tokens: 10 }, /event: message_stop\n/],
  ['Responses', '/std/v1/responses', { input: 'Hello' }, /event: response.completed\n/],
])('a stream that waits for a slot (%s) gets comments, then its answer', async (_api, path, more, end) => {
  const held = new AbortController()
  const slow = {
    model: 'narrow',
    stream: true,
    messages: [{ role: 'user', content: 'mode:stream,tokens=6000,rate=50' }],
  }
  const first = await app.fetch('/std/v1/chat/completions', { body: slow, signal: held.signal })
  const messages = 'input' in more ? {} : { messages: [{ role: 'user', content: 'Hello' }] }
  const response = await app.fetch(path, { body: { model: 'narrow', stream: true, ...messages, ...more } })
  expect(response.status).toBe(200)
  expect(response.headers.get('x-job-id')).toMatch(/^job_/)
  held.abort()
  await first.text().catch(() => {})
  const text = await response.text()
  expect(text).toMatch(/^: waiting \(about \d+ s\)\n/)
  expect(text).toMatch(end)
})

test('a stream that waits and is cancelled ends with an error event', async () => {
  const held = new AbortController()
  const body = {
    model: 'narrow',
    stream: true,
    messages: [{ role: 'user', content: 'mode:stream,tokens=6000,rate=50' }],
  }
  const first = await app.fetch('/std/v1/chat/completions', { body, signal: held.signal })
  const response = await app.fetch('/std/v1/chat/completions', { body })
  const id = response.headers.get('x-job-id')!
  await app.fetch(`/api/jobs/${id}/cancel`, { method: 'POST' })
  const frames = (await response.text()).split('\n').filter(line => line.startsWith('data: '))
  expect(frames.map(frame => (JSON.parse(frame.slice(6)) as { error: { code: string } }).error.code)).toEqual([
    'cancelled',
  ])
  held.abort()
  await first.text().catch(() => {})
})
