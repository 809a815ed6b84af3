import { writeFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { fakeModel, startApp, type TestApp } from '../../../_app.ts'
import { makeOrganization } from '../../_organization.ts'
import { toneModel } from './_speech.ts'

/** Aliases and profiles: one engine under several names. */
let app: TestApp
const models = [
  fakeModel('text', [], {
    aliases: ['gpt-4o-mini', 'other/text'],
    price: { input_per_million_tokens: 1 },
    profiles: {
      terse: {
        description: 'Two words',
        system_prompt: 'Be terse',
        max_tokens: 2,
        price: { input_per_million_tokens: 5 },
      },
    },
  }),
  toneModel({
    id: 'paints',
    tasks: ['slug/text-to-image'],
    slug: 'paint',
    price: { per_image: 1 },
    aliases: ['dall-e-2'],
    profiles: { cheap: { price: { per_image: 0.25 } } },
  }) as object,
]

beforeAll(async () => {
  app = await startApp({ models })
})
afterAll(() => app[Symbol.asyncDispose]())

const hello = [{ role: 'user', content: 'Hello' }]
const json = async (answer: Response) => (await answer.json()) as Record<string, unknown>

const token = async (allowed: string[]) => (await makeOrganization(app, { models: allowed })).secret

async function chat(model: string, more: object = {}, secret?: string) {
  const answer = await app.fetch('/std/v1/chat/completions', {
    body: { model, messages: hello, ...more },
    ...(secret ? { token: secret } : {}),
  })
  const body = await json(answer)
  const id = answer.headers.get('x-job-id')
  const record = id === null ? undefined : await json(await app.fetch(`/api/jobs/${id}?wait=10`))
  return { status: answer.status, body, record }
}

test.each(['gpt-4o-mini', 'other/text'])('the alias %s answers under its name and counts as its model', async name => {
  const { body, record } = await chat(name)
  expect(body).toMatchObject({ model: name, usage: { prompt_tokens: 1 } })
  expect(record).toMatchObject({ model_id: 'text', requested_model: name, cost: 1e-6 })
})

test('the id of a model is not recorded as another name', async () => {
  const { body, record } = await chat('text')
  expect(body.model).toBe('text')
  expect(record).toMatchObject({ model_id: 'text', requested_model: null })
})

test('a profile adds its system prompt and defaults, and has its own price', async () => {
  const { body, record } = await chat('terse')
  expect(body).toMatchObject({
    model: 'terse',
    usage: { prompt_tokens: 3, completion_tokens: 2 },
    choices: [{ finish_reason: 'length' }],
  })
  expect(record).toMatchObject({ model_id: 'text', requested_model: 'terse', cost: 15e-6 })
})

test('a field of the request wins over the profile', async () => {
  expect((await chat('terse', { max_completion_tokens: 3 })).body.usage).toMatchObject({ completion_tokens: 3 })
})

test('a stream names the alias', async () => {
  const answer = await app.fetch('/std/v1/chat/completions', {
    body: { model: 'gpt-4o-mini', messages: hello, stream: true },
  })
  const [first] = (await answer.text()).split('\n')
  expect(JSON.parse(first!.slice('data: '.length))).toMatchObject({ model: 'gpt-4o-mini' })
})

test('all names share one engine', async () => {
  const { models: loads } = (await (await app.fetch('/api/system/status')).json()) as {
    models: { model_id: string; engine_starts: number }[]
  }
  expect(loads).toMatchObject([{ model_id: 'text', engine_starts: 1 }, { model_id: 'paints' }])
})

describe('lists', () => {
  const listed = async (path: string, secret?: string) =>
    json(await app.fetch(path, secret === undefined ? {} : { token: secret }))

  test('/v1/models has every name, each with its model and its price', async () => {
    expect(await listed('/v1/models?task=std/chat-completion')).toMatchObject({
      data: [
        { id: 'text', model_id: 'text', price: { input_per_million_tokens: 1 } },
        { id: 'gpt-4o-mini', model_id: 'text' },
        { id: 'other/text', model_id: 'text' },
        { id: 'terse', model_id: 'text', description: 'Two words', price: { input_per_million_tokens: 5 } },
      ],
    })
    expect(await listed('/v1/models/other/text')).toMatchObject({ id: 'other/text', status: 'warm' })
  })

  test.each([
    ['/ollama/api/tags', 'models'],
    ['/anthropic/v1/models', 'data'],
  ])('%s has every name', async (path, member) => {
    const found = (await listed(path))[member] as { id?: string; name?: string }[]
    expect(found.map(({ id, name }) => id ?? name)).toEqual(['text', 'gpt-4o-mini', 'other/text', 'terse'])
  })

  test('the status lists models with their aliases, and profiles', async () => {
    expect(await listed('/api/model-status')).toMatchObject({
      models: [
        { model_id: 'text', aliases: ['gpt-4o-mini', 'other/text'], profile_of: null, status: 'warm' },
        { model_id: 'terse', aliases: [], profile_of: 'text', status: 'warm' },
        { model_id: 'paints', slug: 'paint' },
        { model_id: 'cheap', profile_of: 'paints', slug: 'cheap/text-to-image' },
      ],
    })
  })

  test('a token sees the names that it may use', async () => {
    const names = async (allowed: string[]) =>
      ((await listed('/v1/models', await token(allowed))).data as { id: string }[]).map(({ id }) => id)
    expect(await names(['terse'])).toEqual(['terse'])
    expect(await names(['gpt-*'])).toEqual(['gpt-4o-mini'])
    expect(await names(['text'])).toEqual(['text', 'gpt-4o-mini', 'other/text'])
  })
})

test.each<[allowed: string[], name: string, status: number]>([
  [['text'], 'gpt-4o-mini', 200],
  [['gpt-4o-mini'], 'gpt-4o-mini', 200],
  [['gpt-4o-mini'], 'text', 403],
  [['gpt-4o-mini'], 'other/text', 403],
  [['text'], 'terse', 403],
  [['terse'], 'terse', 200],
])('a token with the models %j that asks for %s gets %i', async (allowed, name, status) => {
  const { status: got, body } = await chat(name, {}, await token(allowed))
  expect(got).toBe(status)
  if (status === 403) expect(body).toMatchObject({ error: { code: 'model_not_allowed' } })
})

test.each([
  ['/ollama/api/chat', { model: 'gpt-4o-mini:latest', messages: hello, stream: false }, 'gpt-4o-mini:latest'],
  ['/anthropic/v1/messages', { model: 'gpt-4o-mini', messages: hello, max_tokens: 9 }, 'gpt-4o-mini'],
  ['/std/v1/completions', { model: 'gpt-4o-mini', prompt: 'Hello' }, 'gpt-4o-mini'],
  ['/std/v1/embeddings', { model: 'gpt-4o-mini', input: 'Hello' }, 'gpt-4o-mini'],
  ['/std/v1/responses', { model: 'gpt-4o-mini', input: 'Hello' }, 'gpt-4o-mini'],
])('%s takes an alias', async (path, body, model) => {
  expect(await json(await app.fetch(path, { body }))).toMatchObject({ model })
})

test.each<[what: string, path: string, body: object, record: object]>([
  [
    'a job of text',
    '/api/jobs',
    { task: 'std/chat-completion', model_id: 'terse', inputs: { messages: hello } },
    { model_id: 'text', requested_model: 'terse', cost: 15e-6, result: { model: 'terse' } },
  ],
  [
    'a job of images',
    '/api/jobs',
    { task: 'slug/text-to-image', model_id: 'cheap', inputs: { prompt: 'A cat' } },
    { model_id: 'paints', requested_model: 'cheap', cost: 0.25 },
  ],
  [
    'a slug of an alias',
    '/slug/dall-e-2/text-to-image',
    { prompt: 'A cat' },
    { model_id: 'paints', requested_model: 'dall-e-2', cost: 1 },
  ],
])('%s runs under its name', async (_, path, body, record) => {
  const made = (await json(await app.fetch(path, { body }))) as { id?: string; request_id?: string; job_id?: string }
  const list = (await json(await app.fetch('/api/jobs?limit=1&kind=async'))) as { jobs: { id: string }[] }
  const id = made.id ?? list.jobs[0]!.id
  expect(await json(await app.fetch(`/api/jobs/${id}?wait=30`))).toMatchObject({ status: 'completed', ...record })
})

test('a node of a workflow runs under its name', async () => {
  const dag = { nodes: { a: { task: 'std/chat-completion', model_id: 'terse', inputs: { messages: hello } } } }
  const { execution } = await json(await app.fetch('/api/workflows/run', { body: { dag } }))
  const { id } = execution as { id: string }
  const ended = await json(await app.fetch(`/api/workflow-executions/${id}?wait=30`))
  expect(ended.execution).toMatchObject({ status: 'completed', cost: 15e-6 })
  const { jobs } = (await json(await app.fetch('/api/jobs?limit=1&kind=async'))) as { jobs: object[] }
  expect(jobs).toMatchObject([{ model_id: 'text', requested_model: 'terse' }])
})

test('a batch runs under a name', async () => {
  const line = JSON.stringify({
    custom_id: 'a',
    url: '/v1/chat/completions',
    method: 'POST',
    body: { model: 'terse', messages: hello },
  })
  const form = new FormData()
  form.append('purpose', 'batch')
  form.append('file', new Blob([`${line}\n`]), 'in.jsonl')
  const headers = { authorization: `Bearer ${app.secret}` }
  const file = (await (await fetch(`${app.url}/v1/files`, { method: 'POST', body: form, headers })).json()) as {
    id: string
  }
  const body = { input_file_id: file.id, endpoint: '/v1/chat/completions', completion_window: '24h' }
  const batch = await json(await app.fetch('/v1/batches', { body }))
  for (let now = batch; ; now = await json(await app.fetch(`/v1/batches/${String(batch.id)}?wait=5`))) {
    if (now.status !== 'completed' && now.status !== 'failed') continue
    expect(now).toMatchObject({ status: 'completed', request_counts: { completed: 1 } })
    const output = await (await app.fetch(`/v1/files/${String(now.output_file_id)}/content`)).text()
    expect(JSON.parse(output)).toMatchObject({
      response: { body: { model: 'terse', usage: { completion_tokens: 2 } } },
    })
    return
  }
})

test('names change when the file is saved, and engines keep running', async () => {
  const reread = app.logged('The configuration was read again')
  const [text, ...others] = models as Record<string, unknown>[]
  writeFileSync(
    app.configPath,
    stringify({ models: [{ ...text, aliases: ['newer'] }, ...others], limits: { min_free_disk: 0, ballast: 0 } }),
  )
  await reread
  expect((await chat('newer')).body.model).toBe('newer')
  expect(await chat('gpt-4o-mini')).toMatchObject({ status: 404, body: { error: { code: 'model_not_found' } } })
  const { models: loads } = (await (await app.fetch('/api/system/status')).json()) as { models: object[] }
  expect(loads[0]).toMatchObject({ engine_starts: 1 })
})
