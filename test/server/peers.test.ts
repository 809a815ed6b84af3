import { readFileSync, writeFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { parse, stringify } from 'yaml'
import { fakeModel, startApp, type TestApp } from '../_app.ts'

/** Two servers, of which one offers all models of the other: see the guide `second-machine`. */
let other: TestApp
let app: TestApp
const tokenVariable = 'INFER_TEST_PEER'
const price = { input_per_million_tokens: 1e6 }
const tasks = ['std/chat-completion', 'std/completion', 'std/embeddings']

beforeAll(async () => {
  other = await startApp({
    models: [
      fakeModel('text', [], { tasks, price, context_length: 4096, features: ['tools'], aliases: ['default'] }),
      fakeModel('same', [], { tasks }),
      { id: 'painter', engine: 'demo', tasks: ['slug/text-to-image'] },
      { id: 'further', engine: 'infer', url: 'http://127.0.0.1:9', tasks },
    ],
  })
  process.env[tokenVariable] = other.secret
  app = await startApp({
    peers: { box2: { url: other.url, api_key_env: tokenVariable } },
    models: [
      fakeModel('same', [], { tasks: ['std/embeddings'] }),
      fakeModel('falls', ['--exit', '3'], { tasks, fallbacks: [{ model: 'box2/text' }] }),
    ],
  })
  await vi.waitFor(async () => expect(await ids()).toContain('box2/text'), { timeout: 40_000 })
})
afterAll(async () => {
  delete process.env[tokenVariable]
  await app[Symbol.asyncDispose]()
  await other[Symbol.asyncDispose]()
})

interface Listed {
  id: string
  model_id: string
  owned_by: string
  capabilities: string[]
  context_length: number | null
  queue_depth: number
  price: { input_per_million_tokens: number } | null
  status: string
  reason: string | null
}
const read = async <Answer>(answer: Response | Promise<Response>) => (await (await answer).json()) as Answer
const listed = async () => (await read<{ data: Listed[] }>(app.fetch('/std/v1/models'))).data
const named = async (name: string) => (await listed()).find(({ id }) => id === name)
async function ids() {
  return (await listed()).map(({ id }) => id)
}

/** Writes another file for a server. */
function change(server: TestApp, edit: (config: { models: object[]; peers?: object }) => void): void {
  const config = parse(readFileSync(server.configPath, 'utf8')) as { models: object[] }
  edit(config)
  writeFileSync(server.configPath, stringify(config))
}

test('all models of the other infer are offered, each with what it can do and costs', async () => {
  expect(await ids()).toEqual([
    'same',
    'falls',
    'box2/text',
    'text',
    'box2/default',
    'default',
    'box2/same',
    'box2/painter',
    'painter',
  ])
  expect(await named('text')).toMatchObject({
    model_id: 'box2/text',
    owned_by: 'remote',
    context_length: 4096,
    capabilities: ['tools'],
    price,
    queue_depth: 0,
  })
  expect(await named('same')).toMatchObject({ model_id: 'same', owned_by: 'local' })
  const status = await read<{ peers: object[] }>(app.fetch('/api/system/status'))
  expect(status.peers).toMatchObject([{ name: 'box2', url: other.url, models: 4, fault: null }])
})

test.each(['box2/text', 'text', 'default', 'falls'])(
  '%s is answered by the other infer, and billed on both sides',
  async name => {
    const answer = await app.fetch('/std/v1/embeddings', { body: { model: name, input: 'Hello' } })
    expect(await answer.text()).toMatch(/"embedding"/)
    const here = await read<{ model_id: string; cost: number }>(
      app.fetch(`/api/jobs/${answer.headers.get('x-job-id')}?wait=10`),
    )
    expect(here).toMatchObject({ status: 'completed', model_id: name === 'default' ? 'box2/default' : 'box2/text' })
    expect(here.cost).toBeGreaterThan(0)
    const newest = async () => (await read<{ jobs: object[] }>(other.fetch('/api/jobs?limit=1'))).jobs
    await expect.poll(newest).toMatchObject([{ model_id: 'text', cost: here.cost }])
  },
)

test('an image is drawn there by the path of its own name', async () => {
  const drawn = await app.fetch('/slug/queue/submit/painter/text-to-image', {
    body: { prompt: 'A cat', width: 64, height: 64 },
  })
  expect(drawn.status).toBeLessThan(300)
  const newest = async () =>
    (await read<{ jobs: { status: string }[] }>(app.fetch('/api/jobs?model_id=box2/painter&limit=1'))).jobs
  await expect.poll(newest).toMatchObject([{ status: 'completed' }])
})

test('work that stays here is never passed on', async () => {
  const { secret } = await read<{ secret: string }>(
    app.fetch(`/api/organizations/${app.organizationId}/tokens`, { body: { name: 'records', local_only: true } }),
  )
  const answer = await app.fetch('/std/v1/embeddings', { body: { model: 'text', input: 'Hello' }, token: secret })
  expect(answer.status).toBe(403)
})

test('a model that the other infer adds appears, and one that it removes goes', async () => {
  change(other, ({ models }) => models.push(fakeModel('added', [], { tasks })))
  await expect.poll(ids).toContain('added')
  change(other, config => (config.models = config.models.filter(model => (model as { id: string }).id !== 'added')))
  await expect.poll(ids).not.toContain('added')
})

test('once its token is revoked, its models stay known and say so', async () => {
  const { token, secret } = await read<{ token: { id: string }; secret: string }>(
    other.fetch(`/api/organizations/${other.organizationId}/tokens`, {
      body: { name: 'limited', models: ['text'] },
    }),
  )
  process.env.INFER_TEST_LIMITED = secret
  const settings = { url: other.url, api_key_env: 'INFER_TEST_LIMITED' }
  await using limited = await startApp({ peers: { box2: settings }, models: [] })
  const state = async () => {
    const { models } = await read<{ models: { model_id: string; status: string; reason: string | null }[] }>(
      limited.fetch('/api/model-status'),
    )
    return models.find(({ model_id }) => model_id === 'box2/text')
  }
  await expect.poll(state).toMatchObject({ status: expect.any(String) as string })
  expect((await read<{ peers: object[] }>(limited.fetch('/api/system/status'))).peers).toMatchObject([{ models: 2 }])
  await other.fetch(`/api/organizations/${other.organizationId}/tokens/${token.id}`, { method: 'DELETE' })
  await expect.poll(state).toMatchObject({
    status: 'unavailable',
    reason: expect.stringContaining("The peer 'box2' (" + other.url + ') refuses the token of this server') as string,
  })
  const metrics = await (await limited.fetch('/metrics')).text()
  expect(metrics.match(/^infer_peer.*$/gm)).toEqual([
    'infer_peer_models{peer="box2"} 2',
    'infer_peer_usable{peer="box2"} 0',
  ])
  const answer = await limited.fetch('/std/v1/embeddings', { body: { model: 'text', input: 'Hello' } })
  expect([answer.status, await answer.text()]).toEqual([502, expect.stringContaining('revoked or disabled the token')])
  // Another token is another peer: it is asked at once.
  process.env.INFER_TEST_ROTATED = other.secret
  change(limited, config => (config.peers = { box2: { ...settings, api_key_env: 'INFER_TEST_ROTATED' } }))
  await expect.poll(state).toMatchObject({ status: expect.stringMatching(/cold|warm/) as string })
  change(limited, config => (config.peers = {}))
  await expect.poll(state).toBeUndefined()
  delete process.env.INFER_TEST_LIMITED
  delete process.env.INFER_TEST_ROTATED
})

test('one other infer may be two peers with two tokens, and its usage tells them apart', async () => {
  const tokens = await Promise.all(
    ['vision', 'language'].map(async name =>
      read<{ token: { id: string }; secret: string }>(
        other.fetch(`/api/organizations/${other.organizationId}/tokens`, { body: { name } }),
      ),
    ),
  )
  const [vision, language] = tokens.map(({ token }) => token.id)
  const peers = Object.fromEntries(
    ['vision', 'language'].map((name, at) => {
      process.env[`INFER_TEST_PEER_${at}`] = tokens[at]!.secret
      return [name, { url: other.url, api_key_env: `INFER_TEST_PEER_${at}` }]
    }),
  )
  await using both = await startApp({ peers, models: [] })
  const known = async () => (await read<{ data: Listed[] }>(both.fetch('/std/v1/models'))).data.map(({ id }) => id)
  await expect.poll(known).toEqual(expect.arrayContaining(['vision/text', 'language/text']))
  for (const name of ['vision/text', 'language/text', 'language/text'])
    expect((await both.fetch('/std/v1/embeddings', { body: { model: name, input: 'Hello' } })).status).toBe(200)
  const used = async (id: string) =>
    (await read<{ jobs: object[] }>(other.fetch(`/api/jobs?token_id=${id}`))).jobs.length
  await expect.poll(async () => [await used(vision!), await used(language!)]).toEqual([1, 2])
  for (const at of [0, 1]) delete process.env[`INFER_TEST_PEER_${at}`]
})
