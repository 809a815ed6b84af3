import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fakeModel, startApp, type TestApp } from '../_app.ts'
import { makeOrganization } from './_organization.ts'
import { openScriptedEngine, type ScriptedEngine, well } from './_scripted-engine.ts'

/** Work that never leaves this machine, whichever way it comes in. */
let app: TestApp
let far: ScriptedEngine
/** Answers that the engine elsewhere holds back. */
const held: (() => void)[] = []

beforeAll(async () => {
  far = await openScriptedEngine((seen, response) => {
    const answer = () => well(seen, response)
    if (JSON.stringify(seen.body).includes('hold')) held.push(answer)
    else answer()
  })
  const spilled = { model: 'hosted', wait: '50ms' }
  app = await startApp({
    models: [
      far.model('hosted'),
      far.model('narrow', { concurrency: 1 }),
      fakeModel('broken', ['--exit', '3'], { dispatch_wait_ms: '300ms', fallbacks: [spilled] }),
    ],
  })
})
afterAll(async () => {
  await app[Symbol.asyncDispose]()
  await far[Symbol.asyncDispose]()
})

const messages = [{ role: 'user', content: 'Hello' }]
const chatOf = (model: string) => ({ model, messages })
const embeddings = (model: string) => ({ task: 'std/embeddings', model_id: model, inputs: { input: 'Hello' } })
const dagOf = (model: string) => ({ nodes: { a: { task: 'std/embeddings', model_id: model, inputs: { input: 'x' } } } })

/** Every way in which work names a model of text. */
const paths: [name: string, path: string, body: (model: string) => object][] = [
  ['chat', '/std/v1/chat/completions', chatOf],
  ['stream', '/v1/chat/completions', model => ({ ...chatOf(model), stream: true })],
  ['completion', '/v1/completions', model => ({ model, prompt: 'Hello' })],
  ['embeddings', '/v1/embeddings', model => ({ model, input: 'Hello' })],
  ['rerank', '/v1/rerank', model => ({ model, query: 'a', documents: ['b'] })],
  ['responses', '/v1/responses', model => ({ model, input: 'Hello' })],
  ['messages', '/anthropic/v1/messages', model => ({ ...chatOf(model), max_tokens: 10 })],
  ['ollama', '/ollama/api/chat', chatOf],
  ['job', '/api/jobs', embeddings],
  ['workflow', '/api/workflows/run', model => ({ dag: dagOf(model) })],
]

interface Ended {
  status: string
  error?: { code: string; message: string } | null
}

/** Sends work with a token, and resolves once it has ended, with the status of the request and the last answer. */
async function ended(token: string, path: string, body: object): Promise<{ status: number; text: string }> {
  const answer = await app.fetch(path, { token, body })
  const { status } = answer
  const text = await answer.text()
  if (status >= 300 || !path.startsWith('/api/')) return { status, text }
  const { id, execution } = JSON.parse(text) as { id: string; execution?: { id: string } }
  return { status, text: JSON.stringify(await endOf(token, id, execution?.id)) }
}

/** The job, or the execution if there is one, once it has ended. */
async function endOf(token: string, jobId: string, executionId?: string): Promise<Ended> {
  const path = executionId === undefined ? `jobs/${jobId}` : `workflow-executions/${executionId}`
  const answer = (await (await app.fetch(`/api/${path}?wait=30`, { token })).json()) as Ended & { execution?: Ended }
  return answer.execution ?? answer
}

const limited = {
  token: { limits: { localOnly: true } },
  organization: { organization: { localOnly: true } },
} as const

describe.each(['token', 'organization'] as const)('with local_only of the %s', of => {
  let secret: string
  beforeAll(async () => ({ secret } = await makeOrganization(app, limited[of])))

  test.each(paths)('%s never leaves, by name or as a fallback', async (_, path, body) => {
    const before = far.seen.length
    const named = await ended(secret, path, body('hosted'))
    expect(named.status).toBe(403)
    expect(named.text).toContain(`work of the ${of} `)
    // A stored job waits for its model.
    if (!path.startsWith('/api/'))
      expect((await ended(secret, path, body('broken'))).status).toBeGreaterThanOrEqual(400)
    expect(far.seen.length).toBe(before)
  })
})

test('jobs and nodes wait for a model that fails, while those of others move to its fallback', async () => {
  const [free, ...kept] = await Promise.all(
    [{}, limited.token, limited.organization].map(options => makeOrganization(app, options)),
  )
  const stored = paths.filter(([, path]) => path.startsWith('/api/'))
  for (const { secret } of kept)
    for (const [, path, body] of stored)
      expect((await app.fetch(path, { token: secret, body: body('broken') })).status).toBe(202)
  const before = far.seen.length
  await Promise.all(stored.map(([, path, body]) => ended(free!.secret, path, body('broken'))))
  expect(far.seen.length).toBe(before + stored.length)
  for (const { secret } of kept) {
    const { jobs } = (await (await app.fetch('/api/jobs', { token: secret })).json()) as { jobs: Ended[] }
    expect(jobs.filter(({ status }) => status !== 'pending')).toEqual([])
  }
})

test('without it the same work leaves, so that the paths above could', async () => {
  const { secret } = await makeOrganization(app)
  for (const [, path, body] of paths) {
    const before = far.seen.length
    await ended(secret, path, body('hosted'))
    expect(far.seen.length, path).toBe(before + 1)
  }
})

test('work that waits for a model elsewhere does not begin there once its token is local_only', async () => {
  const { secret, organizationId, tokenId } = await makeOrganization(app)
  const first = app.fetch('/v1/embeddings', { token: secret, body: { model: 'narrow', input: 'hold' } })
  await far.until(() => held.length === 1)
  const call = app.fetch('/v1/embeddings', { token: secret, body: { model: 'narrow', input: 'Hello' } })
  const job = (await (await app.fetch('/api/jobs', { token: secret, body: embeddings('narrow') })).json()) as {
    id: string
  }
  const run = await app.fetch('/api/workflows/run', { token: secret, body: { dag: dagOf('narrow') } })
  const { execution } = (await run.json()) as { execution: { id: string } }
  await expect
    .poll(async () => {
      const { models } = (await (await app.fetch('/api/model-status')).json()) as {
        models: { model_id: string; queue_depth: number }[]
      }
      return models.find(({ model_id }) => model_id === 'narrow')?.queue_depth
    })
    .toBe(3)
  const before = far.seen.length
  const path = `/api/organizations/${organizationId}/tokens/${tokenId}`
  expect((await app.fetch(path, { method: 'PATCH', body: { local_only: true } })).status).toBe(200)
  held.shift()!()
  expect((await first).status).toBe(200)
  expect((await call).status).toBe(403)
  expect(await endOf(secret, job.id)).toMatchObject({ status: 'failed', error: { code: 'model_not_allowed' } })
  expect(await endOf(secret, '', execution.id)).toMatchObject({ status: 'failed' })
  expect(far.seen.length).toBe(before)
})
