import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../../_app.ts'
import { ask, painters, small, statusOf, submitted, until } from './_painter.ts'

let app: TestApp
beforeAll(async () => {
  app = await startApp({ models: painters, limits: { sync_wait: '3s' } })
  await until(app, await submitted(app, 'fake/paint/text-to-image'), 'COMPLETED')
  await until(app, await submitted(app, 'fake/solo'), 'COMPLETED')
})
afterAll(() => app[Symbol.asyncDispose]())

const image = 'fake/paint/text-to-image'
const jobsOf = async (model: string): Promise<{ id: string; status: string }[]> =>
  (await ask(app, `/api/jobs?model_id=${model}`)).body.jobs as { id: string; status: string }[]

test.each<[string, object, Record<string, string>]>([
  ['sync_mode', { sync_mode: true }, {}],
  ['Prefer: wait', {}, { prefer: 'wait' }],
  ['Prefer: wait=5', {}, { prefer: 'wait=5' }],
])('%s: 200 with the body that GET returns afterwards', async (_, body, headers) => {
  const answer = await ask(app, `/slug/${image}`, { body: { ...small, ...body }, headers })
  expect([answer.status, answer.body.status]).toEqual([200, 'completed'])
  const id = answer.body.request_id as string
  expect(answer.headers.get('x-fal-request-id')).toBe(id)
  const later = (await ask(app, `/slug/requests/${id}`)).body
  const unsigned = (value: unknown) => JSON.stringify(value).replaceAll(/exp=\d+&sig=[\w-]+/g, '')
  expect(unsigned(answer.body)).toBe(unsigned(later))
  expect(answer.body.images[0].url).toContain('/files/')
})

test.each([
  ['invalid,text=no', 400, 'invalid_value'],
  ['status,code=400,text=no', 400, 'invalid_value'],
])('a failed one is answered with its status: %s → %i', async (mode, status, code) => {
  const answer = await ask(app, `/slug/${image}`, { body: { ...small, prompt: `mode:${mode}`, sync_mode: true } })
  expect([answer.status, answer.body.error.code, answer.body.status]).toEqual([status, code, 'failed'])
  expect(answer.body).toMatchObject({
    request_id: expect.stringMatching(/^q_/) as string,
    message: expect.stringContaining('no') as string,
    response_url: expect.stringContaining('/slug/requests/q_') as string,
  })
})

test('a slow one: 504 with the ids, the caller must not repeat it, and it continues', async () => {
  const body = { ...small, prompt: 'mode:slow,ms=5000,steps=5', sync_mode: true }
  const answer = await ask(app, `/slug/${image}`, { body })
  expect([answer.status, answer.body.error.code, answer.body.status]).toEqual([504, 'timeout', 'processing'])
  expect(answer.headers.get('x-should-retry')).toBe('false')
  expect(answer.headers.get('retry-after')).toBe('2')
  const id = answer.body.request_id as string
  expect(answer.body.job_id).toBe(id.replace('q_', 'job_'))
  expect(answer.body.status_url).toBe(`${app.url}/slug/requests/${id}/status`)
  expect((await statusOf(app, id)).status).toBe('IN_PROGRESS')
  await until(app, id, 'COMPLETED')
})

test('Prefer: wait shortens the wait further', async () => {
  const began = performance.now()
  const answer = await ask(app, `/slug/${image}`, {
    body: { ...small, prompt: 'mode:slow,ms=60000' },
    headers: { prefer: 'wait=1' },
  })
  expect([answer.status, answer.body.error.code]).toEqual([504, 'timeout'])
  expect(performance.now() - began).toBeLessThan(2_900)
  await ask(app, `/slug/requests/${answer.body.request_id}/cancel`, { method: 'POST' })
})

test('a cold model: 503, and no job is left', async () => {
  const answer = await ask(app, '/slug/fake/cold', { body: { ...small, sync_mode: true } })
  expect([answer.status, answer.body.error.code]).toEqual([503, 'model_warming_up'])
  expect(answer.body.error).toHaveProperty('eta_seconds')
  expect(answer.headers.get('x-should-retry')).toBe('true')
  expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
  expect(await jobsOf('cold')).toEqual([])
})

test('a busy model: 503, and no job is left; one with a key continues, and the key returns it', async () => {
  const first = await submitted(app, 'fake/solo', { prompt: 'mode:slow,ms=60000' })
  await until(app, first, 'IN_PROGRESS')
  const body = { ...small, sync_mode: true }
  const waiting = async () => (await jobsOf('solo')).filter(({ status }) => status === 'pending').map(({ id }) => id)
  const answer = await ask(app, '/slug/fake/solo', { body })
  expect([answer.status, answer.body.error.code]).toEqual([503, 'no_capacity'])
  expect(await waiting()).toEqual([])

  const options = { body, headers: { 'idempotency-key': 'busy' } }
  const asked = await Promise.all([ask(app, '/slug/fake/solo', options), ask(app, '/slug/fake/solo', options)])
  const [kept, ...more] = await waiting()
  expect(more).toEqual([])
  for (const one of asked) {
    expect([one.status, one.body.error.code]).toEqual([503, 'no_capacity'])
    expect(one.headers.get('x-should-retry')).toBe('true')
    const ids = { job_id: kept, request_id: kept!.replace('job_', 'q_'), status_url: `${app.url}/api/jobs/${kept}` }
    expect(one.body.error).toMatchObject(ids)
  }
  await ask(app, `/slug/requests/${first}/cancel`, { method: 'POST' })
  await expect.poll(async () => (await ask(app, '/slug/fake/solo', options)).status).toBe(200)
  expect((await ask(app, '/slug/fake/solo', options)).headers.get('x-job-id')).toBe(kept)
})

test('a caller that disconnects does not cancel it', async () => {
  const leave = new AbortController()
  const sent = app.fetch(`/slug/${image}`, {
    body: { ...small, prompt: 'mode:slow,ms=1500,steps=5,who=left', sync_mode: true },
    signal: leave.signal,
  })
  const mine = async () => (await jobsOf('painter')).find(({ status }) => status === 'processing')
  await expect.poll(mine).toBeDefined()
  const { id } = (await mine())!
  leave.abort()
  await expect(sent).rejects.toThrow()
  await until(app, id.replace('job_', 'q_'), 'COMPLETED')
})

test('a cancel by another caller ends the wait', async () => {
  const sent = ask(app, `/slug/${image}`, { body: { ...small, prompt: 'mode:hang', sync_mode: true } })
  const mine = async () => (await jobsOf('painter')).find(({ status }) => status === 'processing')
  await expect.poll(mine).toBeDefined()
  await ask(app, `/api/jobs/${(await mine())!.id}/cancel`, { method: 'POST' })
  const answer = await sent
  expect([answer.status, answer.body.error.code, answer.body.status]).toEqual([499, 'cancelled', 'failed'])
})

test('a repeated request with the same key waits for the same job', async () => {
  const options = {
    body: { ...small, prompt: 'mode:slow,ms=800,steps=4', sync_mode: true },
    headers: { 'idempotency-key': 'twice' },
  }
  const [one, other] = await Promise.all([ask(app, `/slug/${image}`, options), ask(app, `/slug/${image}`, options)])
  expect([one.status, other.status]).toEqual([200, 200])
  expect(one.body.request_id).toBe(other.body.request_id)
  const replays = [one, other].map(({ headers }) => headers.get('idempotent-replayed'))
  expect(replays.filter(Boolean)).toEqual(['true'])
  const again = await ask(app, `/slug/${image}`, options)
  expect([again.status, again.body.request_id]).toEqual([200, one.body.request_id])
})
