import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fakeNeeds, startApp, type TestApp } from '../../_app.ts'

/**
 * A llama-server whose chat template ignores `tools`, as llama.cpp v0.5.0's does with SmolLM2. It answers with the
 * request that it received or, with a grammar, with a call. The slot of an aborted request stays busy for 300 ms.
 */
const script = `
const { createServer } = require('node:http')
const port = process.argv[process.argv.indexOf('--port') + 1]
let working = 0, most = 0
const call = ['Well. <tool', '_call>\\n{"name": "get_weather", "argu', 'ments": {"city": "Oslo"}}\\n</tool', '_call>']
createServer((req, res) => {
  const json = value => res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value))
  if (req.url === '/health') return json({ status: 'ok' })
  if (req.url === '/slots') return json([{ id: 0, is_processing: working > 0 }])
  if (req.url === '/props')
    return json({ chat_template_caps: { supports_tools: process.env.KNOWS_TOOLS === 'yes', supports_system_role: true } })
  let text = ''
  req.on('data', piece => (text += piece)).on('end', () => {
    most = Math.max(most, ++working)
    const body = JSON.parse(text)
    const last = String(body.messages.at(-1).content)
    if (last.includes('hang')) return req.socket.once('close', () => setTimeout(() => working--, 300))
    working--
    // The received request, encoded so that no part of it is parsed as a call.
    const mirror = Buffer.from(text).toString('base64')
    const pieces = process.env.MIRROR ? [mirror] : body.grammar ? call : [last.includes('most') ? 'most ' + most : JSON.stringify(body)]
    const usage = { prompt_tokens: 5, completion_tokens: 4, total_tokens: 9 }
    if (!body.stream)
      return json({ choices: [{ index: 0, message: { role: 'assistant', content: pieces.join('') }, finish_reason: 'stop' }], usage })
    res.writeHead(200, { 'content-type': 'text/event-stream' })
    const send = value => res.write('data: ' + JSON.stringify({ id: 'x', object: 'chat.completion.chunk', ...value }) + '\\n\\n')
    send({ choices: [{ index: 0, delta: { role: 'assistant', content: null }, finish_reason: null }] })
    for (const content of pieces) send({ choices: [{ index: 0, delta: { content }, finish_reason: null }] })
    send({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })
    send({ choices: [], usage })
    res.end('data: [DONE]\\n\\n')
  })
}).listen(Number(port), '127.0.0.1')
`

const bin = mkdtempSync(join(tmpdir(), 'infer-llama-'))
const path = process.env.PATH
let app: TestApp
beforeAll(async () => {
  writeFileSync(join(bin, 'server.cjs'), script)
  writeFileSync(join(bin, 'llama-server'), `#!/bin/sh\nexec '${process.execPath}' '${join(bin, 'server.cjs')}' "$@"\n`)
  chmodSync(join(bin, 'llama-server'), 0o755)
  process.env.PATH = `${bin}:${path}`
  const model = {
    engine: 'llama-server',
    source: '/models/m.gguf',
    devices: 'cpu',
    memory: '16MiB',
    sandbox_read: [...fakeNeeds.sandbox_read, bin, process.execPath],
  }
  app = await startApp({
    models: [
      { id: 'plain', ...model },
      { id: 'knows', ...model, env: { KNOWS_TOOLS: 'yes' } },
      { id: 'narrow', ...model, concurrency: 1 },
      { id: 'eyes', ...model, args: ['--mmproj', '/models/p.gguf'], env: { MIRROR: 'yes' } },
    ],
  })
})
afterAll(async () => {
  await app[Symbol.asyncDispose]()
  process.env.PATH = path
  rmSync(bin, { recursive: true, force: true })
})

// oxlint-disable-next-line no-explicit-any
type Json = any
const tool = (name: string) => ({
  type: 'function',
  function: { name, parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] } },
})
/** A white pixel. */
const pixel =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACXBIWXMAAAPoAAAD6AG1e1JrAAAACklEQVQI12P4DwABAQEAG7buVgAAAABJRU5ErkJggg=='
const tools = [tool('get_weather'), tool('get_time')]
const ask = (model: string, more: object, content = 'Is it warm in Oslo?', signal?: AbortSignal) =>
  app.fetch('/std/v1/chat/completions', {
    body: { model, messages: [{ role: 'user', content }], ...more },
    ...(signal ? { signal } : {}),
  })
const chat = async (model: string, more: object, content?: string): Promise<Json> =>
  (await ask(model, more, content)).json()
/** The request that the engine received. */
const sent = async (model: string, more: object): Promise<Json> =>
  JSON.parse((await chat(model, more)).choices[0].message.content)

describe('a chat template without tool support', () => {
  test.each(['auto', 'required', { type: 'function', function: { name: 'get_weather' } }])(
    'with tool_choice %j the prompt describes the tools, a grammar constrains the answer, and calls are parsed from it',
    async tool_choice => {
      const { choices, usage } = await chat('plain', { tools, tool_choice })
      expect(choices[0]).toMatchObject({
        finish_reason: 'tool_calls',
        message: {
          content: 'Well.',
          tool_calls: [{ id: expect.any(String), function: { name: 'get_weather', arguments: '{"city": "Oslo"}' } }],
        },
      })
      expect(usage).toMatchObject({ prompt_tokens: 5, completion_tokens: 4 })
    },
  )

  test('a large request works the same way', async () => {
    const { choices } = await chat('plain', { tools, tool_choice: 'required' }, 'Is it warm? '.repeat(400_000))
    expect(choices[0].message.tool_calls).toHaveLength(1)
  })

  test('a streamed call arrives as tool_calls', async () => {
    const text = await (await ask('plain', { tools, stream: true, stream_options: { include_usage: true } })).text()
    const events: Json[] = text
      .split('\n')
      .filter(line => line.startsWith('data: {'))
      .map(line => JSON.parse(line.slice(6)))
    const choices = events.flatMap(event => event.choices)
    expect(choices.map(({ delta }) => delta.content ?? '').join('')).toBe('Well.')
    const calls = choices.flatMap(({ delta }) => delta.tool_calls ?? [])
    expect(calls[0]).toMatchObject({ index: 0, type: 'function', function: { name: 'get_weather' } })
    expect(calls.map(call => call.function.arguments).join('')).toBe('{"city": "Oslo"}')
    expect(choices.at(-1).finish_reason).toBe('tool_calls')
    expect(events.at(-1).usage).toMatchObject({ prompt_tokens: 5, completion_tokens: 4 })
    expect(events.every(event => event.choices.length <= 1)).toBe(true)
    expect(text).toContain('[DONE]')
  })

  test('earlier calls and their results are sent as plain messages', async () => {
    const call = { id: 'c1', type: 'function', function: { name: 'get_weather', arguments: '{"city":"Oslo"}' } }
    const messages = [
      { role: 'user', content: 'Warm?' },
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: 'c1', content: '12 degrees' },
    ]
    const body = await sent('plain', { messages })
    expect(body.messages.map(({ role }: Json) => role)).toEqual(['user', 'assistant', 'user'])
    expect(body.messages[1]).toEqual({ role: 'assistant', content: expect.stringContaining('<tool_call>') })
    expect(body.messages[2].content).toContain('12 degrees')
  })

  test('images keep their positions when the tools are described', async () => {
    const look = [
      { type: 'text', text: 'What is this?' },
      { type: 'image_url', image_url: { url: pixel } },
      { type: 'image_url', image_url: { url: pixel } },
      { type: 'text', text: 'Is it warm there?' },
    ]
    const call = { id: 'c1', type: 'function', function: { name: 'get_weather', arguments: '{"city":"Oslo"}' } }
    const messages = [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: look },
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: 'c1', content: '12 degrees' },
      { role: 'user', content: [{ type: 'image_url', image_url: { url: pixel } }] },
    ]
    const body = async (more: object): Promise<Json> =>
      JSON.parse(
        Buffer.from((await chat('eyes', { messages, ...more })).choices[0].message.content, 'base64').toString(),
      )
    const image = {
      type: 'image_url',
      image_url: expect.objectContaining({ url: expect.stringMatching(/^data:image/) }),
    }
    const shown = [{ type: 'text', text: 'What is this?' }, image, image, { type: 'text', text: 'Is it warm there?' }]
    const withTools = await body({ tools, tool_choice: 'required' })
    expect(withTools.grammar).toContain('root')
    expect(withTools.messages).toEqual([
      { role: 'system', content: expect.stringMatching(/^Be brief\.\n\n[^]*<tools>/) },
      { role: 'user', content: shown },
      { role: 'assistant', content: expect.stringContaining('<tool_call>') },
      {
        role: 'user',
        content: [{ type: 'text', text: '<tool_response>\n12 degrees\n</tool_response>' }, image],
      },
    ])
    const without = await body({})
    expect(without).not.toHaveProperty('grammar')
    expect(without.messages[1]).toEqual({ role: 'user', content: shown })
  })

  test('tool_choice none sends no tools, and a request without tools is sent as it is', async () => {
    expect(await sent('plain', { tools, tool_choice: 'none' })).not.toHaveProperty('tools')
    expect(await sent('plain', {})).toMatchObject({ messages: [{ role: 'user', content: 'Is it warm in Oslo?' }] })
  })

  test('a strict schema that grammars do not support is refused, and the slot is free afterwards', async () => {
    const bad = { type: 'function', function: { name: 'f', strict: true, parameters: { type: 'string' } } }
    const refused = await ask('narrow', { tools: [bad], tool_choice: 'required' })
    expect([refused.status, (await refused.json()) as Json]).toMatchObject([400, { error: { code: 'invalid_value' } }])
    expect((await ask('narrow', {})).status).toBe(200)
  })
})

test('a chat template with tool support gets the tools', async () => {
  const body = await sent('knows', { tools })
  expect(body.tools).toHaveLength(2)
  expect(body).not.toHaveProperty('grammar')
})

test('json_object is sent as the schema of an object', async () => {
  const { response_format } = await sent('plain', { response_format: { type: 'json_object' } })
  expect(response_format).toMatchObject({ type: 'json_schema', json_schema: { schema: { type: 'object' } } })
})

test('the slot of an aborted request is not reused while the server works on it', async () => {
  const leave = new AbortController()
  const hanging = ask('narrow', {}, 'hang', leave.signal).catch(() => undefined)
  const running = async () => {
    const text = await (await app.fetch('/metrics')).text()
    return Number(/^infer_leases\{.*model="narrow"\} (\d+)/m.exec(text)?.[1] ?? 0)
  }
  await expect.poll(running).toBe(1)
  // The engine must have read the request before there is anything to continue.
  await expect.poll(async () => (await chat('plain', {}, 'anything')).choices.length).toBe(1)
  leave.abort()
  await hanging
  expect((await chat('narrow', {}, 'most')).choices[0].message.content).toBe('most 1')
})
