import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { LATEST_PROTOCOL_VERSION } from '@modelcontextprotocol/sdk/types.js'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { wavHead } from '../../core/tasks/wav.ts'
import { fakeModel, startApp, type TestApp } from '../_app.ts'
import { makeOrganization } from '../server/_organization.ts'

/** The official client of the Model Context Protocol; it validates results against the output schemas. */
let app: TestApp
let client: Client
const chat = { messages: [{ role: 'user', content: 'Hello' }] }
const small = { prompt: 'a cat', image_size: { width: 64, height: 64 }, seed: 7 }
// oxlint-disable-next-line no-explicit-any
type Json = any

async function connect(secret: string, headers: Record<string, string> = {}): Promise<Client> {
  const connected = new Client({ name: 'test', version: '1' })
  const requestInit = { headers: { authorization: `Bearer ${secret}`, ...headers } }
  const transport = new StreamableHTTPClientTransport(new URL(`${app.url}/mcp`), { requestInit })
  await connected.connect(transport)
  return connected
}
const ask = async (path: string, options?: Parameters<TestApp['fetch']>[1]): Promise<Json> =>
  (await app.fetch(path, options)).json()
const text = (result: Json): string => result.content[0].text as string
async function makeToken(more: object = {}): Promise<{ id: string; secret: string }> {
  const body = { name: 'agent', scopes: ['user:read', 'user:write'], ...more }
  const { token, secret } = await ask(`/api/organizations/${app.organizationId}/tokens`, { body })
  return { id: token.id, secret }
}
const dag = {
  nodes: { write: { model_id: 'fake', task: 'std/chat-completion', inputs: { messages: '${input.messages}' } } },
}
const parameters = { messages: { type: 'array', description: 'What to answer.' } }

beforeAll(async () => {
  app = await startApp({
    cors: { origins: ['https://app.example'] },
    models: [
      fakeModel('fake'),
      fakeModel('other', [], { tasks: ['std/chat-completion'] }),
      fakeModel('painter', [], { slug: 'fake/paint', tasks: ['slug/text-to-image'] }),
      fakeModel('hears', [], { tasks: ['std/audio-transcription'] }),
      fakeModel('cold', ['--ready-after', '60000'], { tasks: ['slug/image-to-image', 'std/audio-speech'] }),
    ],
  })
  client = await connect(app.secret)
})
afterAll(async () => {
  await client.close()
  await app[Symbol.asyncDispose]()
})

test('speaks the newest revision of the client, and lists a tool for each task with the models of the token', async () => {
  expect(client.getServerVersion()).toMatchObject({ name: 'infer' })
  expect((client.transport as StreamableHTTPClientTransport).protocolVersion).toBe(LATEST_PROTOCOL_VERSION)
  await client.ping()
  const { tools } = await client.listTools()
  const byName = new Map(tools.map(tool => [tool.name, tool]))
  expect([...byName.keys()]).toEqual(
    expect.arrayContaining(['chat_completion', 'embeddings', 'rerank', 'text_to_image', 'audio_transcription']),
  )
  expect(byName.get('chat_completion')!.inputSchema.properties!.model).toMatchObject({ enum: ['fake', 'other'] })
  expect(byName.get('chat_completion')!.inputSchema.required).toEqual(['model', 'messages'])
  expect(byName.get('text_to_image')!.inputSchema.required).toEqual(['prompt'])
  const narrow = await connect((await makeToken({ models: ['oth*'] })).secret)
  const { tools: few } = await narrow.listTools()
  expect(few.map(({ name }) => name)).toEqual(['chat_completion'])
  expect(few[0]!.inputSchema.properties!.model).toMatchObject({ enum: ['other'] })
  expect(text(await narrow.callTool({ name: 'chat_completion', arguments: { ...chat, model: 'fake' } }))).toContain(
    'model_not_allowed',
  )
  await narrow.close()
})

test('text tasks are calls: metered, recorded, with structured content', async () => {
  const answer: Json = await client.callTool({ name: 'chat_completion', arguments: { ...chat, model: 'fake' } })
  expect(answer.structuredContent.choices[0].message.content).toBe(text(answer))
  const vectors: Json = await client.callTool({ name: 'embeddings', arguments: { input: ['a', 'b'] } })
  expect(vectors.structuredContent.data).toHaveLength(2)
  const { jobs } = await ask('/api/jobs?task=std/embeddings')
  expect(jobs).toHaveLength(0)
  const wrong: Json = await client.callTool({ name: 'embeddings', arguments: { input: 'a', imput: 'b' } })
  expect([wrong.isError, text(wrong)]).toEqual([true, expect.stringContaining('imput')])
  const long = { model: 'fake', messages: [{ role: 'user', content: 'mode:long,tokens=300000' }] }
  expect(text(await client.callTool({ name: 'chat_completion', arguments: long }))).toContain('fewer inputs')
})

test('a generation is a durable job: it reports progress, and its image is content and a resource', async () => {
  const seen: number[] = []
  const made: Json = await client.callTool(
    { name: 'text_to_image', arguments: { ...small, prompt: 'mode:slow,ms=900,steps=3' } },
    undefined,
    { onprogress: ({ progress }) => void seen.push(progress) },
  )
  const [, image, link] = made.content
  expect(image).toMatchObject({ type: 'image', mimeType: 'image/png' })
  expect(Buffer.from(await (await fetch(link.uri as string)).arrayBuffer()).toString('base64')).toBe(image.data)
  expect(seen[0]).toBe(0)
  expect(seen).toEqual(seen.toSorted((one, other) => one - other))
  expect(seen.length).toBeGreaterThan(1)
  const { jobs } = await ask('/api/jobs?task=slug/text-to-image')
  expect(jobs[0]).toMatchObject({ status: 'completed', kind: 'async' })
  const { resources } = await client.listResources()
  const file = resources.find(({ mimeType }) => mimeType === 'image/png')!
  const { contents } = (await client.readResource({ uri: file.uri })) as Json
  expect(contents[0]).toMatchObject({ uri: file.uri, blob: image.data })
  expect((await client.listResourceTemplates()).resourceTemplates).toHaveLength(1)
})

test('audio is transcribed from a data URL', async () => {
  const samples = Buffer.alloc(16_000, 'tone')
  const url = `data:audio/wav;base64,${Buffer.concat([wavHead(16_000, samples.length), samples]).toString('base64')}`
  const heard: Json = await client.callTool({ name: 'audio_transcription', arguments: { url } })
  expect(heard.isError).toBeUndefined()
  expect(heard.structuredContent.text).toBe(text(heard))
})

describe('workflows', () => {
  test('each is a tool with the schema of its parameters', async () => {
    const { workflow } = await ask('/api/workflows', { body: { name: 'Answer', dag, parameters } })
    const { tools } = await client.listTools()
    const tool = tools.find(({ title }) => title === 'Answer')!
    expect(tool.inputSchema).toMatchObject({ properties: { messages: { type: 'array' } }, required: ['messages'] })
    const done: Json = await client.callTool({ name: tool.name, arguments: chat })
    expect(done.structuredContent.execution_id).toMatch(/^exec_/)
    const { executions } = await ask(`/api/workflows/${workflow.id}/executions`)
    expect(executions[0].status).toBe('completed')
    const wrong: Json = await client.callTool({ name: tool.name, arguments: {} })
    expect([wrong.isError, text(wrong)]).toEqual([true, expect.stringContaining('messages')])
    const failed: Json = await client.callTool({
      name: tool.name,
      arguments: { messages: [{ role: 'user', content: 'mode:status,code=400' }] },
    })
    expect([failed.isError, text(failed)]).toEqual([true, expect.stringContaining('write')])
  })

  test('one of another organization is absent, byte for byte', async () => {
    const { workflow } = await ask('/api/workflows', { body: { name: 'Own', dag, parameters } })
    const foreign = await makeOrganization(app)
    const call = async (name: string) => {
      const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: chat } }
      return (await app.fetch('/mcp', { token: foreign.secret, body })).text()
    }
    const name = `workflow_${workflow.id.slice(3)}`
    const absent = `workflow_${workflow.id.slice(3, -6)}ZZZZZZ`
    expect((await call(name)).replace(name, absent)).toBe(await call(absent))
    const other = await connect(foreign.secret)
    expect((await other.listTools()).tools.some(tool => tool.name === name)).toBe(false)
    expect((await other.listResources()).resources).toEqual([])
    const [{ uri }] = (await client.listResources()).resources as unknown as [{ uri: string }]
    await expect(other.readResource({ uri })).rejects.toThrow('There is no resource')
    await other.close()
  })
})

test('a cancelled request cancels its job; a client that disconnects leaves it', async () => {
  const waiting = { name: 'audio_speech', arguments: { input: 'Hello', voice: 'alloy', response_format: 'wav' } }
  const stop = new AbortController()
  const began = Promise.withResolvers<void>()
  const call = client.callTool(waiting, undefined, { signal: stop.signal, onprogress: () => began.resolve() })
  const refused = expect(call).rejects.toThrow()
  await began.promise
  const [{ id }] = (await ask('/api/jobs?task=std/audio-speech')).jobs as [{ id: string }]
  stop.abort()
  await refused
  expect((await ask(`/api/jobs/${id}?wait=20`)).status).toBe('cancelled')

  const left = new AbortController()
  const params = { ...waiting, _meta: { progressToken: 1 } }
  const response = await app.fetch('/mcp', {
    body: { jsonrpc: '2.0', id: 1, method: 'tools/call', params },
    headers: { accept: 'application/json, text/event-stream' },
    signal: left.signal,
  })
  await response.body!.getReader().read()
  left.abort()
  const [job] = (await ask('/api/jobs?task=std/audio-speech')).jobs as [{ id: string; status: string }]
  expect([job.id === id, job.status]).toEqual([false, 'pending'])
  await app.fetch(`/api/jobs/${job.id}/cancel`, { method: 'POST' })
})

test('a revoked token ends its streams within 2 s, with an error for the request', async () => {
  const token = await makeToken()
  const agent = await connect(token.secret)
  const began = Promise.withResolvers<void>()
  const speech = { name: 'audio_speech', arguments: { input: 'Hello', voice: 'alloy', response_format: 'wav' } }
  const call = agent.callTool(speech, undefined, { onprogress: () => began.resolve() })
  const refused = expect(call).rejects.toThrow(/revoked/)
  await began.promise
  await app.fetch(`/api/organizations/${app.organizationId}/tokens/${token.id}`, { method: 'DELETE' })
  const since = performance.now()
  await refused
  expect(performance.now() - since).toBeLessThan(2_000)
  await expect(agent.ping()).rejects.toThrow()
  await agent.close()
})

describe('refusals', () => {
  test('a token without user:write sees no tools and runs none', async () => {
    const reader = await connect((await makeToken({ scopes: ['user:read'] })).secret)
    expect((await reader.listTools()).tools).toEqual([])
    expect(text(await reader.callTool({ name: 'embeddings', arguments: { input: 'a' } }))).toContain(
      'insufficient_scope',
    )
    await reader.close()
  })

  test('a tool counts as a submission of the organization', async () => {
    const { secret } = await makeOrganization(app, { jobsPerMinute: 1 })
    const limited = await connect(secret)
    const run = () => limited.callTool({ name: 'embeddings', arguments: { input: 'a' } })
    expect((await run()).isError).toBeUndefined()
    expect(text(await run())).toContain('rate_limit')
    expect((await limited.listTools()).tools.length).toBeGreaterThan(0)
    await limited.close()
  })

  const message = { jsonrpc: '2.0', id: 1, method: 'ping' }
  test.each<[string, Parameters<TestApp['fetch']>[1], number, string]>([
    ['no token', { body: message, token: null }, 401, 'missing_api_key'],
    [
      'a page of another origin',
      { body: message, headers: { origin: 'https://evil.example' } },
      403,
      'origin_not_allowed',
    ],
    ['an opaque origin', { body: message, headers: { origin: 'null' } }, 403, 'origin_not_allowed'],
    ['a listed origin', { body: message, headers: { origin: 'https://app.example' } }, 200, '"result":{}'],
    ['a batch', { body: [message, message] }, 400, 'Batches'],
    ['no JSON', { body: '{"jsonrpc":' }, 400, 'invalid_json'],
    ['another JSON-RPC', { body: { ...message, jsonrpc: '1.0' } }, 400, 'jsonrpc'],
    ['an id that is an object', { body: { ...message, id: {} } }, 400, 'id'],
    ['a huge message', { body: { ...message, params: { x: 'x'.repeat(1 << 21) } } }, 413, 'payload_too_large'],
    ['a deep message', { body: `{"jsonrpc":"2.0","id":1,"params":${'['.repeat(500)}` }, 400, 'invalid'],
    ['an unknown revision', { body: message, headers: { 'mcp-protocol-version': '1999-01-01' } }, 400, 'revision'],
    ['an unknown method', { body: { ...message, method: 'x/y' } }, 200, '-32601'],
    ['an unknown tool', { body: { ...message, method: 'tools/call', params: { name: 'x' } } }, 200, '-32602'],
    ['a tool without a name', { body: { ...message, method: 'tools/call' } }, 200, '-32602'],
    ['a wrong cursor', { body: { ...message, method: 'tools/list', params: { cursor: 7 } } }, 200, '-32602'],
    ['a notification', { body: { jsonrpc: '2.0', method: 'notifications/initialized' } }, 202, ''],
    ['a stream of the server', { method: 'GET', headers: { accept: 'text/event-stream' } }, 405, 'method_not_allowed'],
  ])('%s', async (_, options, status, contains) => {
    const response = await app.fetch('/mcp', options)
    expect([response.status, await response.text()]).toEqual([status, expect.stringContaining(contains)])
  })
})
