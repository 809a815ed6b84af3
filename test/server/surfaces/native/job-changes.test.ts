import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newId } from '../../../../core/ids.ts'
import { openLog } from '../../../../core/log.ts'
import { openAdminStore } from '../../../../core/store/sqlite/admin.ts'
import { fakeModel, startApp, type TestApp } from '../../../_app.ts'
import { makeOrganization } from '../../_organization.ts'
import { badly, openScriptedEngine, type ScriptedEngine, well } from '../../_scripted-engine.ts'

interface Job {
  id: string
  status: string
  priority: number
  max_attempts: number
  inputs: unknown
  metadata: unknown
  expires_at: number | null
  finished_at: number
  error: { code: string; message: string; param: string } | null
}

let app: TestApp
let engine: ScriptedEngine
const times = new Map<string, number>()

beforeAll(async () => {
  engine = await openScriptedEngine((seen, response) => {
    const said = String(seen.body.input)
    times.set(said, (times.get(said) ?? 0) + 1)
    if (said.startsWith('hold')) return
    if (said.startsWith('400') || (said.startsWith('first 400') && times.get(said) === 1))
      return badly(response, 400, 'not like this')
    well(seen, response)
  })
  app = await startApp({
    models: [engine.model('far'), engine.model('narrow', { concurrency: 1 }), fakeModel('fake')],
  })
})
afterAll(async () => {
  await app[Symbol.asyncDispose]()
  await engine[Symbol.asyncDispose]()
})

async function ask(method: string, path: string, body?: unknown, headers: Record<string, string> = {}, token?: string) {
  const response = await app.fetch(path, { method, body, headers, ...(token === undefined ? {} : { token }) })
  const text = await response.text()
  return { status: response.status, headers: response.headers, body: JSON.parse(text) as Job }
}
async function submit(input: string, more: object = {}): Promise<string> {
  const made = await ask('POST', '/api/jobs', {
    task: 'std/embeddings',
    model_id: 'far',
    inputs: { input },
    ...more,
  })
  expect([made.status, made.body.error]).toEqual([202, undefined])
  return made.body.id
}
const look = (id: string, query = '') => ask('GET', `/api/jobs/${id}${query}`)
const end = async (id: string) => (await look(id, '?wait=60')).body
const codeOf = ({ status, body }: { status: number; body: Job }) => [status, body.error?.code]

describe('a repeated job', () => {
  test('is a new job with the same inputs and settings, and the first one is unchanged', async () => {
    const id = await submit('first 400, then well', {
      priority: 7,
      max_attempts: 2,
      metadata: { ref: '1' },
      expires_after_seconds: 3600,
    })
    const first = await end(id)
    expect(first.status).toBe('failed')
    const again = await ask('POST', `/api/jobs/${id}/retry`)
    expect([again.status, again.body]).toEqual([
      202,
      { id: expect.stringMatching(/^job_/), queue_id: again.body.id.replace('job_', 'q_'), status: 'pending' },
    ])
    expect(again.body.id).not.toBe(id)
    const second = await end(again.body.id)
    expect(second).toMatchObject({ status: 'completed', priority: 7, max_attempts: 2, metadata: { ref: '1' } })
    expect(second.inputs).toEqual(first.inputs)
    expect(second.expires_at! - second.finished_at).toBe(3600)
    expect((await look(id)).body).toEqual(first)
  })

  test.each([
    ['completed', 'fine'],
    ['cancelled', 'hold to cancel'],
  ])('may have %s', async (status, input) => {
    const id = await submit(input)
    if (status === 'cancelled') await ask('POST', `/api/jobs/${id}/cancel`)
    expect((await end(id)).status).toBe(status)
    const again = await ask('POST', `/api/jobs/${id}/retry`)
    expect(again.status).toBe(202)
    await ask('POST', `/api/jobs/${again.body.id}/cancel`)
  })

  test('must have ended: 409', async () => {
    const waiting = await submit('a', { not_before: Math.floor(Date.now() / 1000) + 3600 })
    const running = await submit('hold and run')
    await engine.until(seen => seen.some(({ body }) => body.input === 'hold and run'))
    for (const id of [waiting, running]) {
      expect(codeOf(await ask('POST', `/api/jobs/${id}/retry`))).toEqual([409, 'conflict'])
      await ask('POST', `/api/jobs/${id}/cancel`)
    }
  })

  test('cannot be a synchronous call: its inputs are not kept', async () => {
    const call = await app.fetch('/std/v1/embeddings', { body: { model: 'far', input: 'a' } })
    await call.text()
    const refused = await ask('POST', `/api/jobs/${call.headers.get('x-job-id')}/retry`)
    expect(codeOf(refused)).toEqual([409, 'conflict'])
    expect(refused.body.error!.message).toContain('inputs are not stored')
  })

  test('is made once per key; the same key for another job is refused', async () => {
    const [one, other] = [await submit('one'), await submit('other')]
    await Promise.all([end(one), end(other)])
    const headers = { 'idempotency-key': newId('req') }
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => ask('POST', `/api/jobs/${one}/retry`, undefined, headers)),
    )
    expect(new Set(answers.map(({ status, body }) => `${status} ${body.id}`)).size).toBe(1)
    expect(codeOf(await ask('POST', `/api/jobs/${other}/retry`, undefined, headers))).toEqual([
      422,
      'idempotency_key_reused',
    ])
  })

  test('needs a token that may use its model', async () => {
    const id = await submit('guarded')
    await end(id)
    const made = await app.fetch(`/api/organizations/${app.organizationId}/tokens`, {
      body: { name: 'narrow', models: ['narrow'] },
    })
    const { secret } = (await made.json()) as { secret: string }
    expect(codeOf(await ask('POST', `/api/jobs/${id}/retry`, undefined, {}, secret))).toEqual([
      403,
      'model_not_allowed',
    ])
  })

  test('counts as a submission', async () => {
    const other = await makeOrganization(app, { jobsPerMinute: 1 })
    const body = { task: 'std/embeddings', model_id: 'far', inputs: { input: 'a' } }
    const made = await ask('POST', '/api/jobs', body, {}, other.secret)
    await ask('GET', `/api/jobs/${made.body.id}?wait=30`, undefined, {}, other.secret)
    expect(codeOf(await ask('POST', `/api/jobs/${made.body.id}/retry`, undefined, {}, other.secret))).toEqual([
      429,
      'rate_limit',
    ])
  })
})

describe('a deleted job', () => {
  test('is in no list and no answer but the usage', async () => {
    const id = await submit('delete me')
    await end(id)
    const deleted = await ask('DELETE', `/api/jobs/${id}`)
    expect([deleted.status, deleted.body]).toEqual([200, { id, object: 'job', deleted: true }])
    for (const [method, path] of [
      ['GET', ''],
      ['DELETE', ''],
      ['GET', '/logs'],
      ['GET', '/events'],
      ['POST', '/cancel'],
      ['POST', '/retry'],
    ] as const)
      expect([path, ...codeOf(await ask(method, `/api/jobs/${id}${path}`))]).toEqual([path, 410, 'output_expired'])
    const { jobs } = (await (await app.fetch('/api/jobs?limit=100')).json()) as { jobs: { id: string }[] }
    expect(jobs.some(one => one.id === id)).toBe(false)
  })

  test('must have ended: 409, and it continues', async () => {
    const id = await submit('hold on')
    await engine.until(seen => seen.some(({ body }) => body.input === 'hold on'))
    expect(codeOf(await ask('DELETE', `/api/jobs/${id}`))).toEqual([409, 'conflict'])
    expect((await look(id)).body.status).toBe('processing')
    await ask('POST', `/api/jobs/${id}/cancel`)
    expect((await ask('DELETE', `/api/jobs/${id}`)).status).toBe(200)
  })

  test('cannot be a synchronous call: 409', async () => {
    const call = await app.fetch('/std/v1/embeddings', { body: { model: 'far', input: 'a' } })
    await call.text()
    expect(codeOf(await ask('DELETE', `/api/jobs/${call.headers.get('x-job-id')}`))).toEqual([409, 'conflict'])
  })

  test('must be of the own organization: in others the answer is the same as for one that never existed', async () => {
    const id = await submit('mine')
    await end(id)
    const other = await makeOrganization(app)
    for (const one of [id, newId('job')])
      expect(codeOf(await ask('DELETE', `/api/jobs/${one}`, undefined, {}, other.secret))).toEqual([404, 'not_found'])
    await ask('DELETE', `/api/jobs/${id}`)
    // The answer does not reveal to another organization that the job existed.
    expect(codeOf(await ask('GET', `/api/jobs/${id}`, undefined, {}, other.secret))).toEqual([404, 'not_found'])
  })
})

describe('a job past its retention time', () => {
  test('is no longer shown, and once it is removed the answer is the same', async () => {
    const id = await submit('short', { expires_after_seconds: 1 })
    const ended = await end(id)
    expect(ended.expires_at).toBeGreaterThanOrEqual(ended.finished_at)
    await expect.poll(async () => (await look(id)).status).toBe(410)
    const before = await look(id)
    const store = await openAdminStore(app.dataDir, openLog('error'))
    try {
      await store.jobs.sweep(Date.now(), 100)
    } finally {
      await store.close()
    }
    const after = await look(id)
    expect(codeOf(after)).toEqual([410, 'output_expired'])
    expect(after.body.error!.message).toBe(before.body.error!.message)
  })

  test('to begin fails with the reason why it waited', async () => {
    const busy = await submit('hold the slot', { model_id: 'narrow' })
    await engine.until(seen => seen.some(({ body }) => body.input === 'hold the slot'))
    const id = await submit('too late', { model_id: 'narrow', start_timeout_seconds: 0.3 })
    const job = await end(id)
    expect([job.status, job.error?.code]).toEqual(['failed', 'timeout'])
    expect(times.has('too late')).toBe(false)
    await ask('POST', `/api/jobs/${busy}/cancel`)
  })

  test('to run fails, and its engine request is aborted', async () => {
    const id = await submit('hold for ever', { timeout_seconds: 0.3, max_attempts: 1 })
    const job = await end(id)
    expect([job.status, job.error?.code]).toEqual(['failed', 'timeout'])
    await engine.until(seen => seen.find(({ body }) => body.input === 'hold for ever')?.goneAt !== undefined)
  })
})

describe('the log of a job', () => {
  test('is empty when nothing was logged', async () => {
    const id = await submit('silent')
    await end(id)
    const { status, body } = await ask('GET', `/api/jobs/${id}/logs`)
    expect([status, body]).toEqual([200, { logs: [] }])
    const call = await app.fetch('/std/v1/embeddings', { body: { model: 'far', input: 'a' } })
    await call.text()
    expect((await ask('GET', `/api/jobs/${call.headers.get('x-job-id')}/logs`)).body).toEqual({ logs: [] })
  })
})

test('a caller that waits for the end and disconnects is removed', async () => {
  const id = await submit('hold while they wait')
  const leave = new AbortController()
  const waiting = Array.from({ length: 20 }, () =>
    app.fetch(`/api/jobs/${id}?wait=120`, { signal: leave.signal }).catch(() => 'gone'),
  )
  const running = async () =>
    ((await (await app.fetch('/api/system/status')).json()) as { requests: number }).requests ?? -1
  await expect.poll(running).toBeGreaterThanOrEqual(20)
  leave.abort()
  expect(await Promise.all(waiting)).toEqual(waiting.map(() => 'gone'))
  await expect.poll(running).toBeLessThan(5)
  await ask('POST', `/api/jobs/${id}/cancel`)
})
