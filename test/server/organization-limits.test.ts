import { readFileSync, writeFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { parse, stringify } from 'yaml'
import { openAccounts } from '../../core/accounts/accounts.ts'
import { openStoredKeys } from '../../core/accounts/keys.ts'
import { openLog } from '../../core/log.ts'
import { openAdminStore } from '../../core/store/sqlite/admin.ts'
import { type AllowedHours, weekdays } from '../../core/store/store.ts'
import { fakeModel, startApp, type TestApp } from '../_app.ts'
import { makeOrganization } from './_organization.ts'
import { openScriptedEngine, type ScriptedEngine, well } from './_scripted-engine.ts'

let app: TestApp
let engine: ScriptedEngine
/** Requests that the engine has got and answers when `hold(false)` is called. */
const held: Parameters<typeof well>[] = []
let holds = true
function hold(on: boolean): void {
  holds = on
  if (!on) for (const request of held.splice(0)) well(...request)
}

beforeAll(async () => {
  engine = await openScriptedEngine((...request) => {
    const [seen, response] = request
    if (holds) held.push([seen, response])
    else well(seen, response)
  })
  app = await startApp({
    models: [fakeModel('fake'), engine.model('held', { concurrency: 64 })],
    plans: { small: { concurrent_requests: 6, share: 3 } },
  })
})
afterAll(async () => {
  await app[Symbol.asyncDispose]()
  await engine[Symbol.asyncDispose]()
})

const together = <T>(count: number, send: (at: number) => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: count }, (_, at) => send(at)))
const post = (path: string, body: unknown, token: string) => app.fetch(path, { body, token })
type Refusal = { code: string; message: string; type: string; limit?: string; limit_of?: string; opens_at?: number }
const errorOf = async (response: Response): Promise<Refusal> => ((await response.json()) as { error: Refusal }).error
const chat = (model: string, more: object = {}) => ({ model, messages: [{ role: 'user', content: 'Hello' }], ...more })
const embedding = { model: 'fake', input: 'a' }
const job = { task: 'std/chat-completion', model_id: 'held', inputs: { messages: [{ role: 'user', content: 'a' }] } }
const limitHeaders = ({ headers }: Response) =>
  Object.fromEntries([...headers].filter(([name]) => name.includes('ratelimit')))

describe('50 clients at once, 6 may', () => {
  // Six a minute refill one in ten seconds: however slow this machine is, none is refilled during a burst.
  test.each<[string, object, (secret: string) => Promise<Response>]>([
    ['send requests in a minute', { requestsPerMinute: 6 }, secret => app.fetch('/api/me', { token: secret })],
    ['submit jobs in a minute', { jobsPerMinute: 6 }, secret => post('/std/v1/embeddings', embedding, secret)],
  ])('%s with one token: 6 pass, 44 are refused, and another token is not concerned', async (_, limits, send) => {
    const { secret, organizationId, name } = await makeOrganization(app, { limits })
    const answers = await together(50, () => send(secret))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(6)
    const refused = answers.filter(({ status }) => status === 429)
    expect(refused).toHaveLength(44)
    expect(await errorOf(refused[0]!)).toMatchObject({ code: 'rate_limit', limit_of: 'token' })
    const wait = Number(refused[0]!.headers.get('retry-after-ms'))
    expect(wait).toBeGreaterThan(0)
    expect(wait).toBeLessThanOrEqual(10_000)
    expect(Number(refused[0]!.headers.get('retry-after'))).toBe(Math.ceil(wait / 1000))
    const other = await addToken(organizationId, {})
    expect((await send(other)).status, name).toBe(200)
  })

  test.each([
    ['its organization', { organization: { concurrentRequests: 6 } }, 'organization'],
    ['its token', { limits: { concurrentRequests: 6 } }, 'token'],
    ['its plan', { organization: { plan: 'small' } }, 'organization'],
  ])('be open by %s: 6 pass, 44 are refused, and the next passes when they have ended', async (_, options, limitOf) => {
    const { secret } = await makeOrganization(app, options)
    hold(true)
    const together50 = Array.from({ length: 50 }, (__, at) =>
      post('/std/v1/chat/completions', chat('held', { stream: at % 5 === 0 }), secret),
    )
    await vi.waitFor(() => expect(held).toHaveLength(6), 20_000)
    // What is not a submission is not concerned.
    expect((await app.fetch('/api/me', { token: secret })).status).toBe(200)
    const refusedNow = await post('/std/v1/chat/completions', chat('held'), secret)
    expect(await errorOf(refusedNow)).toMatchObject({
      code: 'rate_limit',
      type: 'rate_limit_error',
      limit: 'concurrent_requests',
      limit_of: limitOf,
    })
    expect(refusedNow.headers.get('retry-after')).toBe('1')
    // Those of the 50 that are refused are answered before the six.
    let answered = 0
    for (const answer of together50) void answer.then(() => answered++)
    await vi.waitFor(() => expect(answered).toBe(44), 20_000)
    hold(false)
    const answers = await Promise.all(together50)
    const texts = await Promise.all(answers.map(answer => answer.text()))
    expect(texts).toHaveLength(50)
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(6)
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(44)
    for (let at = 0; at < 8; at++) {
      const next = await post('/std/v1/chat/completions', chat('held'), secret)
      expect([next.status, await next.text()]).toEqual([200, expect.any(String)])
    }
  })

  test('be open: one whose client disconnects no longer counts', async () => {
    const { secret } = await makeOrganization(app, { organization: { concurrentRequests: 1 } })
    hold(true)
    const client = new AbortController()
    const left = app
      .fetch('/std/v1/chat/completions', { body: chat('held'), token: secret, signal: client.signal })
      .catch(() => 'left')
    await vi.waitFor(() => expect(held).toHaveLength(1), 20_000)
    expect((await post('/std/v1/embeddings', embedding, secret)).status).toBe(429)
    client.abort()
    await left
    await expect.poll(async () => (await post('/std/v1/embeddings', embedding, secret)).status).toBe(200)
    hold(false)
  })

  test('be jobs that wait or run: 6 are accepted, 44 are queue_full, and the next is accepted when one was cancelled', async () => {
    hold(true)
    const { secret, name } = await makeOrganization(app, { organization: { pendingJobs: 6 } })
    const answers = await together(50, () => post('/api/jobs', job, secret))
    const accepted = answers.filter(({ status }) => status === 202)
    const refused = answers.filter(({ status }) => status === 429)
    expect([accepted.length, refused.length]).toEqual([6, 44])
    expect(await errorOf(refused[0]!)).toMatchObject({
      code: 'queue_full',
      message: `The organization '${name}' has 6 jobs that wait or run, and may have 6. Submit this one when one has ended, or cancel one: GET /api/jobs?status=pending lists them.`,
    })
    expect(refused[0]!.headers.get('retry-after')).toBe('5')
    expect((await post('/std/v1/embeddings', embedding, secret)).status).toBe(200)
    const { id } = (await accepted[0]!.json()) as { id: string }
    expect((await post(`/api/jobs/${id}/cancel`, {}, secret)).status).toBe(200)
    expect((await post('/api/jobs', job, secret)).status).toBe(202)
    expect((await post('/api/jobs', job, secret)).status).toBe(429)
    for (const one of accepted.slice(1))
      await post(`/api/jobs/${((await one.json()) as { id: string }).id}/cancel`, {}, secret)
    hold(false)
  })

  test('be uploaded in a day: 6 are stored, 44 are refused until midnight UTC', async () => {
    const { secret, name } = await makeOrganization(app, { organization: { uploadsPerDay: 6 } })
    const token = await storageToken(secret)
    const answers = await together(50, () => upload(token))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(6)
    const refused = answers.filter(({ status }) => status === 429)
    expect(refused).toHaveLength(44)
    expect(((await refused[0]!.json()) as { detail: string }).detail).toContain(
      `The organization '${name}' may upload 6 files a day and has done so. It may upload again from `,
    )
    const untilMidnight = (86_400_000 - (Date.now() % 86_400_000)) / 1000
    expect(Math.abs(Number(refused[0]!.headers.get('retry-after')) - untilMidnight)).toBeLessThan(60)
  })

  test('be stored by their size: 6 are stored, 44 are storage_full', async () => {
    const { secret, name } = await makeOrganization(app, { organization: { storedBytes: 6_500 } })
    const token = await storageToken(secret)
    const answers = await together(50, () => upload(token, 1_000))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(6)
    const refused = answers.filter(({ status }) => status === 403)
    expect(refused).toHaveLength(44)
    expect(((await refused[0]!.json()) as { detail: string }).detail).toContain(
      `The files of the organization '${name}' have 6000B of the 6500B that it may store`,
    )
    expect(refused[0]!.headers.get('retry-after')).toBeNull()
  })
})

describe('tokens of models per minute', () => {
  test('work is refused once they are used, calls and jobs alike, until the debt is repaid', async () => {
    const { secret, organizationId } = await makeOrganization(app, { limits: { tokensPerMinute: 1 } })
    const first = await post('/std/v1/embeddings', embedding, secret)
    expect([first.status, first.headers.get('x-ratelimit-limit-tokens')]).toEqual([200, '1'])
    expect(first.headers.get('x-ratelimit-remaining-tokens')).toBe('1')
    const refused = await post('/std/v1/embeddings', embedding, secret)
    expect([refused.status, refused.headers.get('x-ratelimit-remaining-tokens')]).toEqual([429, '0'])
    expect(await errorOf(refused)).toMatchObject({ code: 'rate_limit', limit: 'tokens_per_minute', limit_of: 'token' })
    expect(Number(refused.headers.get('retry-after-ms'))).toBeGreaterThan(30_000)
    expect((await post('/api/jobs', { ...job, model_id: 'fake' }, secret)).status).toBe(429)
    expect((await app.fetch('/api/me', { token: secret })).status).toBe(200)
    const other = await addToken(organizationId, {})
    expect((await post('/std/v1/embeddings', embedding, other)).status).toBe(200)
  })

  test('a job is counted when it has ended', async () => {
    const { secret } = await makeOrganization(app, { limits: { tokensPerMinute: 1 } })
    const submitted = await post('/api/jobs', { ...job, model_id: 'fake' }, secret)
    const { id } = (await submitted.json()) as { id: string }
    const read = await app.fetch(`/api/jobs/${id}?wait=20`, { token: secret })
    expect(await read.json()).toMatchObject({ status: 'completed' })
    expect((await post('/std/v1/embeddings', embedding, secret)).status).toBe(429)
  })
})

describe('allowed hours', () => {
  const always: AllowedHours = { timezone: 'UTC', ranges: [{ days: [...weekdays], from: '00:00', to: '24:00' }] }
  const otherDay = weekdays[(new Date(Date.now() + 3 * 86_400_000).getUTCDay() + 6) % 7]!
  const later: AllowedHours = { timezone: 'UTC', ranges: [{ days: [otherDay], from: '00:00', to: '24:00' }] }

  test('a token is accepted in them', async () => {
    const { secret } = await makeOrganization(app, { limits: { allowedHours: always } })
    expect((await app.fetch('/api/me', { token: secret })).status).toBe(200)
  })

  test('outside of them every request is 403 and says when the token may be used again', async () => {
    const { secret } = await makeOrganization(app, { limits: { allowedHours: later } })
    for (const refused of [
      await app.fetch('/api/me', { token: secret }),
      await post('/std/v1/embeddings', embedding, secret),
    ]) {
      expect(refused.status).toBe(403)
      const { code, opens_at, message } = await errorOf(refused)
      expect([code, new Date(opens_at! * 1000).getUTCHours()]).toEqual(['outside_allowed_hours', 0])
      expect(opens_at! * 1000 - Date.now()).toBeLessThan(3 * 86_400_000)
      expect(message).toContain(`${otherDay} 00:00–24:00 (UTC)`)
    }
  })
})

test('headers describe both limits of the bucket, with the token as partition, and the tightest one for OpenAI clients', async () => {
  const { secret, tokenId } = await makeOrganization(app, {
    requestsPerMinute: 60,
    jobsPerMinute: 10,
    limits: { jobsPerMinute: 5, tokensPerMinute: 6000 },
  })
  const partition = `:${Buffer.from(tokenId).toString('base64')}:`
  expect(limitHeaders(await post('/std/v1/embeddings', embedding, secret))).toEqual({
    'x-ratelimit-limit-requests': '5',
    'x-ratelimit-remaining-requests': '4',
    'x-ratelimit-reset-requests': '12s',
    'x-ratelimit-limit-tokens': '6000',
    'x-ratelimit-remaining-tokens': '6000',
    'x-ratelimit-reset-tokens': '0ms',
    'ratelimit-policy': `"jobs";q=10;w=60, "token-jobs";q=5;w=60;pk=${partition}, "api";q=60;w=60`,
    ratelimit: `"jobs";r=9;t=6, "token-jobs";r=4;t=12;pk=${partition}`,
  })
})

test('a request without the scope has the headers and counts as nothing', async () => {
  const { secret } = await makeOrganization(app, { requestsPerMinute: 2, scopes: ['user:read'] })
  for (let time = 0; time < 3; time++) {
    const refused = await app.fetch('/metrics', { token: secret })
    expect([refused.status, refused.headers.get('ratelimit')]).toEqual([403, '"api";r=2;t=0'])
  }
})

test('GET /api/me: the limits that apply to the caller, and what is left of them', async () => {
  const { secret } = await makeOrganization(app, {
    requestsPerMinute: 60,
    organization: { plan: 'small', pendingJobs: 5, storedBytes: 1000, uploadsPerDay: 3, monthlySpendLimit: 2_500_000 },
    limits: { jobsPerMinute: 7, concurrentRequests: 2 },
  })
  await upload(await storageToken(secret), 400)
  const me = (await (await app.fetch('/api/me', { token: secret })).json()) as {
    organization: { limits: object }
    limits: { name: string; limit_of: string; limit: number; remaining: number; reset_seconds: number | null }[]
  }
  expect(me.organization.limits).toEqual({
    api_requests_per_minute: 60,
    job_submissions_per_minute: null,
    tokens_per_minute: null,
    concurrent_requests: 6,
    pending_jobs: 5,
    stored_bytes: 1000,
    uploads_per_day: 3,
    monthly_spend_limit: 2.5,
    local_only: false,
  })
  expect(me.limits.map(({ name, limit_of, limit, remaining }) => [name, limit_of, limit, remaining])).toEqual([
    ['requests_per_minute', 'organization', 60, expect.any(Number)],
    ['concurrent_requests', 'organization', 6, 6],
    ['jobs_per_minute', 'token', 7, 7],
    ['concurrent_requests', 'token', 2, 2],
    ['pending_jobs', 'organization', 5, 5],
    ['stored_bytes', 'organization', 1000, 600],
    ['uploads_per_day', 'organization', 3, 2],
  ])
})

test('a changed plan in infer.yaml takes effect while the server runs; a removed one has the limits of free', async () => {
  const { secret } = await makeOrganization(app, { organization: { plan: 'small' } })
  const text = readFileSync(app.configPath, 'utf8')
  const config = parse(text) as { plans: object }
  const changed = app.logged('The configuration was read again')
  writeFileSync(app.configPath, stringify({ ...config, plans: { small: { concurrent_requests: 9 } } }))
  expect((await changed).plans).toBe('small')
  const limits = async () => {
    const me = (await (await app.fetch('/api/me', { token: secret })).json()) as {
      organization: { limits: { concurrent_requests: number; api_requests_per_minute: number } }
    }
    return me.organization.limits
  }
  await expect.poll(limits).toMatchObject({ concurrent_requests: 9 })
  const missing = app.logged('A plan does not exist')
  writeFileSync(app.configPath, stringify({ ...config, plans: {} }))
  await expect.poll(limits).toMatchObject({ concurrent_requests: null })
  expect((await missing).plan).toBe('small')
  writeFileSync(app.configPath, text)
  await expect.poll(limits).toMatchObject({ concurrent_requests: 6 })
})

/** Another token of an organization. */
async function addToken(organizationId: string, limits: object): Promise<string> {
  const log = openLog('error')
  const store = await openAdminStore(app.dataDir, log)
  try {
    const accounts = openAccounts({ store, keys: openStoredKeys(app.dataDir), log })
    return (await accounts.issue({ name: 'other', scopes: ['user:read', 'user:write'], organizationId, limits })).secret
  } finally {
    await store.close()
  }
}

async function storageToken(secret: string): Promise<string> {
  const answer = await post('/fal/rest/storage/auth/token', {}, secret)
  return ((await answer.json()) as { token: string }).token
}

const upload = (token: string, bytes = 10): Promise<Response> =>
  app.fetch('/fal/cdn/files/upload', {
    method: 'POST',
    token,
    body: 'x'.repeat(bytes),
    headers: { 'content-type': 'text/plain' },
  })
