import { once } from 'node:events'
import { existsSync, statSync, writeFileSync } from 'node:fs'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterEach, describe, expect, test } from 'vitest'
import { openLog } from '../../../../core/log.ts'
import { type EngineHealth, type Handlers, openHttp } from '../../../../gpu/engines/http.ts'
import { file, spawnEngine, startEngine, user } from './_engine.ts'

const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

/** The HTTP server without a model. */
async function openDoor(options: { key?: string; bodyLimit?: number; handlers?: Handlers } = {}) {
  const state: { health: EngineHealth; handlers: Handlers | undefined } = {
    health: { status: 'loading', progress: 0.25 },
    handlers: options.handlers,
  }
  const logged: string[] = []
  const server = await openHttp({
    port: 0,
    key: options.key,
    bodyLimit: options.bodyLimit,
    health: () => state.health,
    handlers: () => state.handlers,
    log: openLog('info', line => logged.push(line)),
  })
  closing.push(() => server.close())
  const ask = async (method: string, path: string, body?: string, headers: Record<string, string> = {}) => {
    const response = await fetch(`${server.address}${path}`, { method, body, headers })
    const content = await response.text()
    return {
      status: response.status,
      headers: response.headers,
      body: content === '' ? undefined : JSON.parse(content),
    }
  }
  return { server, state, logged, ask }
}

const echo: Handlers = {
  'POST /v1/echo': (body, reply) => reply.json({ got: body }),
  'POST /v1/broken': () => {
    throw new TypeError('a secret detail')
  },
  'GET /v1/models': (_body, reply) => reply.json([]),
}

describe('the HTTP server', () => {
  test('reports the progress of loading, refuses work meanwhile, then is ok', async () => {
    const { state, ask } = await openDoor()
    expect(await ask('GET', '/health')).toMatchObject({ status: 503, body: { status: 'loading', progress: 0.25 } })
    const early = await ask('POST', '/v1/echo', '{}')
    expect(early).toMatchObject({
      status: 503,
      body: { error: { code: 'model_warming_up', type: 'server_error', param: null } },
    })
    expect(early.headers.get('retry-after')).toBe('1')
    state.health = { status: 'ok' }
    state.handlers = echo
    expect(await ask('GET', '/health')).toMatchObject({ status: 200, body: { status: 'ok' } })
    expect(await ask('POST', '/v1/echo', '{"a":1}')).toMatchObject({ status: 200, body: { got: { a: 1 } } })
  })

  test('refuses work without the key, if one is set, but reports its health', async () => {
    const { ask } = await openDoor({ key: 'k'.repeat(40), handlers: echo })
    const as = (authorization: string) => ask('GET', '/v1/models', undefined, { authorization })
    expect((await ask('GET', '/v1/models')).body.error.code).toBe('invalid_api_key')
    for (const wrong of ['Bearer ', 'Bearer no', `Bearer ${'k'.repeat(39)}`, 'k'.repeat(40)])
      expect((await as(wrong)).status).toBe(401)
    expect((await as(`Bearer ${'k'.repeat(40)}`)).status).toBe(200)
    expect((await ask('GET', '/health')).status).toBe(503)
  })

  test.each([
    ['GET', '/nowhere', undefined, 404, 'unknown_url'],
    ['GET', '/constructor', undefined, 404, 'unknown_url'],
    ['GET', '/v1/echo', undefined, 405, 'method_not_allowed'],
    ['POST', '/v1/models', '{}', 405, 'method_not_allowed'],
    ['POST', '/v1/echo', '{', 400, 'invalid_json'],
    ['POST', '/v1/echo', '['.repeat(5000), 400, 'invalid_json'],
    ['POST', '/v1/echo', `"${'x'.repeat(2000)}"`, 413, 'payload_too_large'],
    ['POST', '/v1/broken', '{}', 500, 'internal_error'],
  ])('%s %s %j', async (method, path, body, status, code) => {
    const { ask, logged } = await openDoor({ handlers: echo, bodyLimit: body?.startsWith('"') ? 1000 : undefined })
    const answer = await ask(method, path, body)
    expect([answer.status, answer.body.error.code]).toEqual([status, code])
    expect(JSON.stringify(answer.body)).not.toContain('secret')
    expect(logged.join('').includes('a secret detail')).toBe(code === 'internal_error')
    if (status === 405) expect(answer.headers.get('allow')).toBe(path === '/v1/echo' ? 'POST' : 'GET')
  })

  test('waits for a reader that does not read', async () => {
    let written = 0
    const stalled = Promise.withResolvers<void>()
    const { server } = await openDoor({
      handlers: {
        'POST /v1/much': async (_body, reply) => {
          for (; written < 1000; written++) {
            const room = reply.write('x'.repeat(1 << 16))
            if (room && written > 10) stalled.resolve()
            await room
          }
          reply.end('end')
        },
      },
    })
    const request = httpRequest({
      port: Number(new URL(server.address).port),
      host: '127.0.0.1',
      method: 'POST',
      path: '/v1/much',
      agent: false,
    })
    request.end('{}')
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    await stalled.promise
    expect(written).toBeLessThan(1000)
    expect((await text(response)).length).toBe(1000 * (1 << 16) + 3)
  })

  test('notices a disconnected caller, and later errors affect no other request', async () => {
    const noticed = Promise.withResolvers<string>()
    const begun = Promise.withResolvers<void>()
    const { server, logged } = await openDoor({
      handlers: {
        'POST /v1/slow': async (_body, reply) => {
          begun.resolve()
          await once(reply.signal, 'abort')
          noticed.resolve((reply.signal.reason as Error).message)
          reply.signal.throwIfAborted()
        },
      },
    })
    const socket = connect(Number(new URL(server.address).port), '127.0.0.1')
    socket.write('POST /v1/slow HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}')
    await begun.promise
    socket.destroy()
    expect(await noticed.promise).toBe('The client disconnected.')
    expect(logged).toEqual([])
  })

  test('ends running work on close with a last frame and without [DONE]', async () => {
    const { server } = await openDoor({
      handlers: {
        'POST /v1/stream': async (_body, reply) => {
          await reply.write('data: 1\n\n')
          await once(reply.signal, 'abort')
          reply.signal.throwIfAborted()
        },
      },
    })
    const response = await fetch(`${server.address}/v1/stream`, { method: 'POST', body: '{}' })
    closing.splice(0)
    const [rest] = await Promise.all([response.text(), server.close()])
    const [first, last] = rest.trim().split('\n\n')
    expect(first).toBe('data: 1')
    expect(JSON.parse(last!.slice(6))).toMatchObject({ error: { code: 'shutting_down', type: 'server_error' } })
    expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
  })
})

describe('the process', () => {
  test('listens on a socket for its user alone, replaces a stale one, and exits with status 0 on SIGTERM', async () => {
    const socket = file('toy.sock')
    const ask = (path: string, body?: object) =>
      new Promise<{ status: number | undefined; body: string }>((resolve, reject) => {
        const request = httpRequest(
          { socketPath: socket, path, method: body ? 'POST' : 'GET', agent: false },
          response => {
            text(response).then(body => resolve({ status: response.statusCode, body }), reject)
          },
        )
        request.on('error', reject).end(body && JSON.stringify(body))
      })
    for (const _time of ['killed', 'ended']) {
      const engine = spawnEngine({ model: file('tiny-chat.gguf'), socket, key: 'k' })
      await engine.line('The engine is ready')
      expect(statSync(socket).mode & 0o777).toBe(0o600)
      expect(await ask('/health')).toEqual({ status: 200, body: '{"status":"ok"}' })
      expect((await ask('/v1/chat/completions', { messages: [user('hi')] })).status).toBe(401)
      if (_time === 'killed') {
        engine.child.kill('SIGKILL')
        await engine.exited
        expect(existsSync(socket)).toBe(true)
      } else {
        engine.child.kill('SIGTERM')
        expect(await engine.exited).toEqual([0, null])
        expect(existsSync(socket)).toBe(false)
      }
    }
  })

  test('exits with status 0 while it loads, and while it works', async () => {
    const early = spawnEngine({ model: file('tiny-chat.gguf'), port: 0 })
    const busy = await startEngine({ model: 'tiny-chat-random.gguf' })
    early.child.kill('SIGTERM')
    const { response } = await busy.open({ temperature: 0, logit_bias: { 68: 100 } })
    const rest = text(response)
    busy.child.kill('SIGTERM')
    expect(await busy.exited).toEqual([0, null])
    expect((await rest).trim().split('\n\n').at(-1)).toContain('"code":"shutting_down"')
    expect(await rest).not.toContain('[DONE]')
    // Before its handler is installed the signal itself ends it; both count as an orderly end.
    expect([0, null]).toContain((await early.exited)[0])
  })

  test.each([
    ['a file that is not there', 'nowhere.gguf', 'std/chat-completion', /no model file/],
    ['a file that is no model', 'text.gguf', 'std/chat-completion', /cannot be loaded: .* is not a GGUF file/],
    ['a model that cannot rerank', 'tiny-chat.gguf', 'std/rerank', /cannot rerank/],
    ['a model that cannot chat', 'tiny-embed.gguf', 'std/chat-completion', /cannot chat/],
  ] as const)('cannot start with %s and gives the reason', async (_rule, name, task, message) => {
    writeFileSync(file('text.gguf'), 'this is not a model')
    const engine = spawnEngine({ model: file(name), tasks: [task] })
    const [code] = await engine.exited
    expect(code).toBe(1)
    expect(engine.log.join('\n')).toMatch(message)
  })

  test('refuses every kind of malformed body and keeps running', async () => {
    const engine = await startEngine({ model: 'tiny-chat.gguf', tasks: ['std/chat-completion', 'std/embeddings'] })
    const bodies = [
      '',
      '{',
      'null',
      '[]',
      '"text"',
      '0',
      '{"messages":1}',
      '{"messages":[null]}',
      '{"messages":[{"role":"user"}]}',
      '{"model":"m","messages":[{"role":"user","content":{}}]}',
      '{"model":"m","messages":[{"role":"user","content":[{"type":"text"}]}]}',
      '{"model":"m","messages":[{"role":"user","content":"\\ud800"}],"stop":5}',
      '{"model":"m","messages":[{"role":"user","content":"a"}],"seed":1e400}',
      '{"model":"m","messages":[{"role":"user","content":"a"}],"stream":"yes"}',
      `{"a":${'['.repeat(100_000)}`,
      '{"__proto__":{"messages":[]},"constructor":1}',
      '\u0000\u0001',
    ]
    for (const path of ['/v1/chat/completions', '/v1/embeddings'])
      for (const body of bodies) {
        const answer = await engine.post(path, body)
        expect([body.slice(0, 40), answer.status, typeof answer.body.error?.message]).toEqual([
          body.slice(0, 40),
          400,
          'string',
        ])
      }
    const odd = {
      model: 'm',
      messages: [user('\ud800 \u0000 <|im_end|>\u200b')],
      chat_template_kwargs: { messages: 1, bos_token: [] },
    }
    expect((await engine.post('/v1/chat/completions', odd)).status).toBe(200)
    expect((await engine.post('/v1/rerank', { model: 'm', query: 'a', documents: ['b'] })).body.error.code).toBe(
      'unsupported_task',
    )
    expect(engine.log.filter(line => line.includes('"level":"error"'))).toEqual([])
  })
})
