import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { openUsageReports } from '../../core/accounts/usage-report.ts'
import { checkDatabase, openAdminStore } from '../../core/store/sqlite/admin.ts'
import { organizationEventSchemas } from '../../server/docs/log-event-schemas.ts'
import { fakeModel, startApp, type TestApp } from '../_app.ts'
import { makeOrganization } from './_organization.ts'
import { openReader } from './_sse.ts'
import { toneModel } from './surfaces/openai/_speech.ts'

/** What requests use and cost, and the limits of organizations and tokens. */
let app: TestApp
const demo = (id: string, task: string, price: object) =>
  toneModel({ id, tasks: [task], price, concurrency: 2 }) as Record<string, unknown>

beforeAll(async () => {
  app = await startApp({
    models: [
      fakeModel('text', [], {
        price: { input_per_million_tokens: 1, output_per_million_tokens: 2, per_thousand_documents: 10 },
        concurrency: 64,
      }),
      fakeModel('free'),
      demo('tones', 'std/audio-speech', { per_thousand_characters: 1 }),
      demo('ears', 'std/audio-transcription', { per_audio_second: 1 }),
      demo('paints', 'slug/text-to-image', { per_image: 0.5, image_prices: [{ size: '64x64', price: 0.25 }] }),
      demo('films', 'slug/text-to-video', { per_video_second: 2 }),
    ],
  })
})
afterAll(() => app[Symbol.asyncDispose]())

interface JobFacts {
  status: string
  usage: Record<string, number | null>
  cost: number
  error: { code: string } | null
}

const chat = (model = 'text', more: object = {}) => ({ model, messages: [{ role: 'user', content: 'Hello' }], ...more })
const post = (path: string, body: object, token?: string) => app.fetch(path, { body, ...(token ? { token } : {}) })

/** The record of a request, once it has ended. */
async function recordOf(id: string, token?: string): Promise<JobFacts> {
  const answer = await app.fetch(`/api/jobs/${id}?wait=30`, token ? { token } : {})
  return (await answer.json()) as JobFacts
}

async function called(path: string, body: object): Promise<JobFacts> {
  const answer = await post(path, body)
  await answer.arrayBuffer()
  expect(answer.status).toBe(200)
  return recordOf(answer.headers.get('x-job-id')!)
}

const silence = 'data:audio/wav;base64,UklGRjQAAABXQVZFZm10IBAAAAABAAEAgD4AAIA+AAABAAgAZGF0YRAAAACAgICAgICAgICAgICAgICA'
const image = { prompt: 'A cat', width: 64, height: 64 }

test.each<[string, object, Partial<JobFacts['usage']>, number?]>([
  ['/std/v1/rerank', { model: 'text', query: 'a', documents: ['b', 'c'] }, { documents: 2 }],
  ['/std/v1/score', { model: 'text', text_1: 'a', text_2: ['b', 'c', 'd'] }, { documents: 3 }],
  [
    '/std/v1/audio/speech',
    { model: 'tones', input: 'Hello', response_format: 'wav' },
    { characters: 5, input_tokens: 0 },
    0.005,
  ],
  ['/std/v1/audio/transcriptions', { model: 'ears', url: silence }, { audio_seconds: 0.001 }, 0.001],
  ['/std/v1/images/generations', { model: 'paints', prompt: 'A cat', size: '64x64', n: 2 }, { images: 2 }, 0.5],
  ['/std/v1/images/generations', { model: 'paints', prompt: 'A cat', size: '128x64' }, { images: 1 }, 0.5],
])('%s with %j has its usage recorded', async (path, body, usage, cost) => {
  const record = await called(path, body)
  expect(record.status).toBe('completed')
  expect(record.usage).toMatchObject(usage)
  expect(record.usage.gpu_ms).toEqual(expect.any(Number))
  if (cost !== undefined) expect(record.cost).toBe(cost)
})

test.each([false, true])('a chat (stream: %s) costs its tokens, and its time on the slot is recorded', async stream => {
  const { usage, cost } = await called('/std/v1/chat/completions', chat('text', { stream }))
  const { input_tokens: input, output_tokens: output, gpu_ms, energy_joules } = usage
  expect(input! > 0 && output! > 0).toBe(true)
  expect(cost).toBeCloseTo((input! + 2 * output!) / 1e6, 9)
  expect(gpu_ms).toBeGreaterThanOrEqual(0)
  expect(energy_joules).toBeNull()
})

test('embeddings cost their tokens', async () => {
  const { usage, cost } = await called('/std/v1/embeddings', { model: 'text', input: 'Hello' })
  expect(usage).toMatchObject({ output_tokens: 0 })
  expect(cost).toBeCloseTo(usage.input_tokens! / 1e6, 9)
})

test('a video costs its length', async () => {
  const inputs = { prompt: 'A cat', num_frames: 16, fps: 16, aspect_ratio: '1:1', resolution: '480p' }
  const answer = await post('/api/jobs', { task: 'slug/text-to-video', model_id: 'films', inputs })
  const { id } = (await answer.json()) as { id: string }
  const { status, usage, cost } = await recordOf(id)
  expect([status, usage.video_seconds, cost]).toEqual(['completed', 1, 2])
})

test('prices are shown with the models', async () => {
  const { data } = (await (await app.fetch('/std/v1/models')).json()) as {
    data: { id: string; price: object | null }[]
  }
  const priceOf = (id: string) => data.find(model => model.id === id)!.price
  expect(priceOf('free')).toBeNull()
  expect(priceOf('text')).toMatchObject({ currency: 'USD', input_per_million_tokens: 1, per_image: 0 })
})

/** An image costs 0.25, whatever happens. */
const paint = (token: string, more: object = {}) =>
  post('/api/jobs', { task: 'slug/text-to-image', model_id: 'paints', inputs: { ...image, ...more } }, token)

test('50 clients at the limit: as many begin as the limit has room for, and no other is refused', async () => {
  const { secret } = await makeOrganization(app, { monthlySpendLimit: 5_000_000 })
  const answers = await Promise.all(Array.from({ length: 50 }, () => paint(secret)))
  const answered = (status: number) => answers.filter(answer => answer.status === status).length
  expect([answered(202), answered(429)]).toEqual([20, 30])
  const refused = answers.find(({ status }) => status === 429)!
  const { error } = (await refused.json()) as { error: Record<string, unknown> }
  expect(error).toMatchObject({ code: 'quota_exceeded', type: 'insufficient_quota', reset_at: expect.any(Number) })
  expect(error.message).toMatch(
    /^You exceeded the current monthly quota of this organization \(spend limit 5\.00 USD\)/,
  )
  expect(refused.headers.get('x-should-retry')).toBe('false')
  expect(refused.headers.has('retry-after')).toBe(false)
  expect(error).not.toHaveProperty('retry_after')
  const begun = await Promise.all(
    answers.filter(({ status }) => status === 202).map(async one => ((await one.json()) as { id: string }).id),
  )
  const ended = await Promise.all(begun.map(id => recordOf(id, secret)))
  expect(ended.map(({ status, cost }) => `${status} ${cost}`)).toEqual(Array(20).fill('completed 0.25'))
  expect((await paint(secret)).status).toBe(429)
  const free = await post('/std/v1/chat/completions', chat('free'), secret)
  expect(free.status).toBe(200)
  expect((await checkDatabase(app.dataDir)).findings).toEqual([])
})

test('a cancelled job gives back what it held', async () => {
  const { secret } = await makeOrganization(app, { monthlySpendLimit: 250_000 })
  const inputs = { ...image, num_images: 1 }
  const later = { not_before: Math.floor(Date.now() / 1000) + 3_600 }
  const body = { task: 'slug/text-to-image', model_id: 'paints', inputs, ...later }
  const { id } = (await (await post('/api/jobs', body, secret)).json()) as { id: string }
  expect((await paint(secret)).status).toBe(429)
  await app.fetch(`/api/jobs/${id}/cancel`, { method: 'POST', token: secret })
  expect((await paint(secret)).status).toBe(202)
})

test('the limit of a token stops that token alone', async () => {
  const { secret } = await makeOrganization(app, { limits: { monthlySpendLimit: 1 } })
  const first = await post('/std/v1/chat/completions', chat(), secret)
  expect(first.status).toBe(200)
  const second = await post('/std/v1/chat/completions', chat(), secret)
  const { error } = (await second.json()) as { error: { message: string; quota: string } }
  expect([second.status, error.quota]).toEqual([429, 'token'])
  expect(error.message).toContain("the token 'first'")
  expect((await post('/std/v1/chat/completions', chat())).status).toBe(200)
})

test('a node whose limit is reached meanwhile fails without another attempt, and no execution begins', async () => {
  const { secret } = await makeOrganization(app, { monthlySpendLimit: 1 })
  const node = (content: string) => ({
    model_id: 'text',
    task: 'std/chat-completion',
    inputs: { messages: [{ role: 'user', content }] },
  })
  const dag = {
    nodes: { first: node('Hello'), second: node('${nodes.first.result.choices[0].message.content}') },
    edges: [{ from: 'first', to: 'second' }],
  }
  const made = await post('/api/workflows', { name: 'two', dag }, secret)
  const { workflow } = (await made.json()) as { workflow: { id: string } }
  const begun = await post(`/api/workflows/${workflow.id}/execute`, {}, secret)
  expect(begun.status).toBe(202)
  const { execution } = (await begun.json()) as { execution: { id: string } }
  const ended = await app.fetch(`/api/workflow-executions/${execution.id}?wait=30`, { token: secret })
  const { execution: after } = (await ended.json()) as { execution: { status: string; error: object } }
  expect(after.status).toBe('failed')
  expect(JSON.stringify(after.error)).toContain('quota_exceeded')
  const nodes = await (
    await app.fetch(`/api/workflow-executions/${execution.id}/nodes/second`, { token: secret })
  ).text()
  expect(nodes).toContain('quota_exceeded')
  expect((await post(`/api/workflows/${workflow.id}/execute`, {}, secret)).status).toBe(429)
})

test('tokens that a token created share its budget, so that they cannot multiply it', async () => {
  const limits = { monthlySpendLimit: 500_000 }
  const { secret, organizationId } = await makeOrganization(app, { limits })
  const child = async (parent: string) => {
    const body = { name: 'child', scopes: ['user:read', 'user:write', 'admin:write'] }
    const made = await post(`/api/organizations/${organizationId}/tokens`, body, parent)
    return ((await made.json()) as { secret: string }).secret
  }
  const [first, second] = [await child(secret), await child(secret)]
  const grandchild = await child(first)
  for (const token of [first, grandchild]) {
    const { id } = (await (await paint(token)).json()) as { id: string }
    expect((await recordOf(id, token)).cost).toBe(0.25)
  }
  for (const token of [secret, first, second, grandchild]) {
    const refused = await paint(token)
    expect(refused.status).toBe(429)
    expect(await refused.text()).toContain('quota_exceeded')
    const { spend } = (await (await app.fetch('/api/me', { token })).json()) as { spend: { token: object } }
    expect(spend.token).toMatchObject({ monthly_limit: 0.5, remaining: 0 })
  }
})

test('what is spent and held is shown to the caller, with the usage, and in the status', async () => {
  const limits = { monthlySpendLimit: 500_000 }
  const { secret, organizationId } = await makeOrganization(app, { monthlySpendLimit: 1_000_000, limits })
  const { id } = (await (await paint(secret)).json()) as { id: string }
  expect((await recordOf(id, secret)).cost).toBe(0.25)
  const body = { task: 'slug/text-to-image', model_id: 'paints', inputs: image }
  const later = { ...body, not_before: Math.floor(Date.now() / 1000) + 3_600 }
  expect((await post('/api/jobs', later, secret)).status).toBe(202)
  const read = async (path: string, token?: string) =>
    (await (await app.fetch(path, token ? { token } : {})).json()) as Record<string, Record<string, unknown>>
  const { spend } = await read('/api/me', secret)
  const period = { period_start: expect.any(Number) as number, period_end: expect.any(Number) as number }
  const organization = { monthly_limit: 1, spent: 0.25, held: 0.25, remaining: 0.5, ...period }
  const token = { monthly_limit: 0.5, spent: 0.25, held: 0.25, remaining: 0, ...period }
  expect(spend).toEqual({ currency: 'USD', organization, token })
  const { tokens } = (await read(`/api/organizations/${organizationId}/tokens`)) as unknown as {
    tokens: { id: string; spend: object }[]
  }
  expect(tokens.map(one => one.spend)).toEqual([token])
  const one = await read(`/api/organizations/${organizationId}/tokens/${tokens[0]!.id}`)
  expect(one.token).toMatchObject({ spend: token })
  const usage = await read(`/api/organizations/${organizationId}/usage`, secret)
  expect(usage.spend_limit).toEqual({ ...organization, hard: true })
  const status = await read('/api/system/status')
  expect(status.spend).toMatchObject({ currency: 'USD', organization: { monthly_limit: null, remaining: null } })
  const local = await openAdminStore(app.dataDir)
  const report = openUsageReports({ store: local, currency: 'USD' })
  const request = {
    organizationId,
    limits: { monthlySpendLimit: 1_000_000 },
    width: '1d',
    groupBy: [],
    only: {},
  } as const
  const { spend_limit } = await report.read({ ...request, start: undefined, end: undefined, limit: 1, page: undefined })
  expect(spend_limit).toEqual({ ...organization, hard: true })
  await local.close()
})

test('the events of limits and tokens are as the reference describes them', async () => {
  const { secret } = await makeOrganization(app, { monthlySpendLimit: 250_000, limits: { monthlySpendLimit: 300_000 } })
  using reader = await openReader(app, '/api/events?types=quota.*,token.*', { authorization: `Bearer ${secret}` })
  const seen = (type: string) => reader.records.some(({ data }) => data.type === type)
  await paint(secret)
  await reader.until(() => seen('quota.exceeded'))
  const { organization } = (await (await app.fetch('/api/me', { token: secret })).json()) as {
    organization: { id: string }
  }
  const path = `/api/organizations/${organization.id}/tokens`
  const { token } = (await (await post(path, { name: 'x' }, secret)).json()) as { token: { id: string } }
  await app.fetch(`${path}/${token.id}`, { method: 'DELETE', token: secret })
  await reader.until(() => seen('token.revoked'))
  const Event = z.union(organizationEventSchemas({ id: z.string(), timestamp: z.string(), created_at: z.int() }))
  const events = reader.records.map(({ data }) => data).filter(({ type }) => /^(quota|token)/.test(type))
  expect(events.map(({ type, data }) => [type, data['of'], data['percent']])).toEqual([
    ['quota.warning', 'organization', 80],
    ['quota.exceeded', 'organization', 100],
    ['quota.warning', 'token', 80],
    ['token.created', undefined, undefined],
    ['token.revoked', undefined, undefined],
  ])
  // Parsing removes what is not described.
  for (const event of events) expect(Event.parse(event)).toEqual(event)
})

const paintNode = (more: object = {}) => ({
  model_id: 'paints',
  task: 'slug/text-to-image',
  inputs: image,
  cache: 'off',
  ...more,
})
const runsPaint = { task: 'workflow/run', inputs: { workflow: 'Paint' } }
const inOrder = (...names: string[]) => names.slice(1).map((to, at) => ({ from: names[at]!, to }))

/** An execution whose budget was too small: its cost, and the states and errors of its nodes. */
async function outcomeOf(body: object) {
  const begun = (await (await post('/api/workflows/run', body)).json()) as { execution: { id: string } }
  const ended = await app.fetch(`/api/workflow-executions/${begun.execution.id}?wait=30`)
  type Node = { node_id: string; status: string; error: { code: string; message: string } | null }
  const { execution } = (await ended.json()) as {
    execution: { id: string; status: string; budget: number | null; cost: number; nodes: Node[] }
  }
  return {
    ...execution,
    states: Object.fromEntries(execution.nodes.map(({ node_id, status }) => [node_id, status])),
    errors: execution.nodes.flatMap(({ error }) => (error ? [`${error.code}: ${error.message}`] : [])),
  }
}

test('a node that would pass the budget of its execution, or its own, does not begin', async () => {
  const dag = { nodes: { a: paintNode(), b: paintNode(), c: paintNode() }, edges: inOrder('a', 'b', 'c') }
  const passed = await outcomeOf({ dag, budget: 0.6 })
  expect(passed).toMatchObject({ status: 'failed', budget: 0.6, cost: 0.5 })
  expect(passed.states).toEqual({ a: 'completed', b: 'completed', c: 'failed' })
  expect(passed.errors).toEqual([
    `quota_exceeded: This node may cost 0.25 USD, more than is left of the budget of 0.60 USD of the execution ${passed.id}: 0.50 USD is spent. Raise the budget, or let the node do less.`,
  ])
  expect(await outcomeOf({ dag, budget: 0.75 })).toMatchObject({ status: 'completed', cost: 0.75 })
  const own = await outcomeOf({ dag: { nodes: { a: paintNode({ budget: 0.1 }) } } })
  expect(own).toMatchObject({ status: 'failed', budget: null, cost: 0 })
  expect(own.errors[0]).toContain('more than its budget of 0.10 USD')
})

test('what executions within others cost counts for the budget of those around them', async () => {
  const paint = { nodes: { a: paintNode(), b: paintNode() }, edges: inOrder('a', 'b') }
  expect((await post('/api/workflows', { name: 'Paint', dag: paint })).status).toBe(201)
  const dag = { nodes: { first: runsPaint, second: runsPaint }, edges: inOrder('first', 'second') }
  const passed = await outcomeOf({ dag, budget: 0.6 })
  expect(passed).toMatchObject({ status: 'failed', cost: 0.5, states: { first: 'completed', second: 'failed' } })
  expect(passed.errors[0]).toContain(`of the budget of 0.60 USD of the execution ${passed.id}: 0.50 USD is spent`)
  const node = { ...runsPaint, budget: 0.3 }
  const limited = await outcomeOf({ dag: { nodes: { first: node } } })
  expect(limited).toMatchObject({ status: 'failed', cost: 0.25 })
  expect(limited.errors[0]).toContain('of the budget of 0.30 USD')
})
