import { afterAll, beforeAll, expect, test } from 'vitest'
import { fakeModel, startApp, type TestApp } from '../../_app.ts'
import { makeOrganization } from '../_organization.ts'
import { openScriptedEngine, type ScriptedEngine, well } from '../_scripted-engine.ts'

/** Work that a remote model does in place of one of this machine, within a monthly amount of the organization. */
let app: TestApp
let far: ScriptedEngine
/** One currency unit per token. */
const price = { input_per_million_tokens: 1e6 }
const limit = 300

beforeAll(async () => {
  far = await openScriptedEngine(well)
  const hosted = { model: 'hosted', when: ['failed'], monthly_spend_limit: limit }
  app = await startApp({
    plans: { sealed: { local_only: true } },
    models: [
      far.model('hosted', { price }),
      fakeModel('own', ['--exit', '3'], { dispatch_wait_ms: '500ms', fallbacks: [hosted] }),
      fakeModel('slow', [], { concurrency: 1, fallbacks: [{ ...hosted, when: [], wait: '50ms' }] }),
    ],
  })
})
afterAll(async () => {
  await app[Symbol.asyncDispose]()
  await far[Symbol.asyncDispose]()
})

const chat = (model: string, token: string, content = 'Hello') =>
  app.fetch('/std/v1/chat/completions', { token, body: { model, messages: [{ role: 'user', content }] } })

async function recordsOf(token: string) {
  const { jobs } = (await (await app.fetch('/api/jobs?limit=100', { token })).json()) as {
    jobs: { status: string; model_id: string; fallback_reason: string | null; requested_model: string; cost: number }[]
  }
  return jobs
}

test('16 clients together never spend more than the limit of the fallback, and fail without it', async () => {
  const { secret } = await makeOrganization(app)
  const statuses: number[] = []
  let left = 60
  const client = async () => {
    while (left-- > 0) statuses.push((await chat('own', secret)).status)
  }
  await Promise.all(Array.from({ length: 16 }, client))
  const answered = statuses.filter(status => status === 200).length
  expect(answered).toBeGreaterThan(3)
  expect(answered).toBeLessThan(60)
  await expect
    .poll(async () => (await recordsOf(secret)).filter(({ status }) => status === 'completed').length)
    .toBe(answered)
  const spilled = (await recordsOf(secret)).filter(({ model_id }) => model_id === 'hosted')
  expect(spilled).toHaveLength(answered)
  expect(spilled[0]).toMatchObject({ requested_model: 'own', fallback_reason: 'failed' })
  expect(spilled.reduce((sum, { cost }) => sum + cost, 0)).toBeLessThanOrEqual(limit)
})

test('a request waits for its own model when nothing is left of the limit', async () => {
  const { secret } = await makeOrganization(app)
  await app.fetch('/api/models/slow/load?wait=30', { method: 'POST' })
  const before = far.seen.length
  // May cost more than the whole limit.
  const [busy, waited] = await Promise.all([
    chat('slow', secret, 'mode:slow,ms=1000'),
    chat('slow', secret, 'Hello '.repeat(2_000)),
  ])
  expect([busy.status, waited.status]).toEqual([200, 200])
  expect(waited.headers.get('x-infer-fallback')).toBeNull()
  expect(far.seen.length).toBe(before)
})

test('the work of an organization that is local_only never leaves the machine', async () => {
  const { secret, name } = await makeOrganization(app, { organization: { plan: 'sealed' } })
  const before = far.seen.length
  const answers = await Promise.all(Array.from({ length: 16 }, () => chat('own', secret)))
  expect(answers.filter(({ status }) => status === 200)).toEqual([])
  const named = await chat('hosted', secret)
  expect(named.status).toBe(403)
  expect(await named.json()).toMatchObject({
    error: {
      code: 'model_not_allowed',
      message: `The model 'hosted' runs elsewhere, and work of the organization '${name}' never leaves this machine ('local_only'). Name a model of this machine.`,
    },
  })
  const job = await app.fetch('/api/jobs', {
    token: secret,
    body: { task: 'std/embeddings', model_id: 'hosted', inputs: { input: 'Hello' } },
  })
  expect(job.status).toBe(403)
  expect(far.seen.length).toBe(before)
})
