import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openAdminStore } from '../../../../core/store/sqlite/admin.ts'
import { openDatabase } from '../../../../core/store/sqlite/database.ts'
import { startApp, type TestApp } from '../../../_app.ts'
import { finishedCall } from '../../../core/store/_store.ts'
import { makeOrganization } from '../../_organization.ts'

interface Answer {
  organization_id: string
  start_time: number
  end_time: number
  currency: string
  totals: Record<string, number>
  spend_limit: Record<string, number | null>
  buckets: { start_time: number; end_time: number; results: Record<string, string | number | null>[] }[]
  has_more: boolean
  next_page: string | null
  error: { code: string; param: string | null; message: string }
}

const january = Date.UTC(2026, 0, 1) / 1000
const february = Date.UTC(2026, 1, 1) / 1000
const day = 86_400

let app: TestApp
let other: { organizationId: string; secret: string }

beforeAll(async () => {
  app = await startApp()
  other = await makeOrganization(app)
  const store = await openAdminStore(app.dataDir)
  const call = (at: number, change: Parameters<typeof finishedCall>[0] = {}) =>
    finishedCall({
      organizationId: app.organizationId,
      createdAt: at * 1000,
      startedAt: at * 1000,
      finishedAt: at * 1000,
      ...change,
    })
  await store.jobs.record([
    call(january + 60, {
      modelId: 'qwen',
      cost: 250_000,
      usage: { inputTokens: 7, outputTokens: 3, images: 2, gpuMs: 1500, audioMs: 500 },
    }),
    call(january + 3 * day, { modelId: 'qwen', tokenId: 'tok_b', status: 'failed' }),
    call(january + 3 * day, { modelId: '@sum(A1)', cost: 0 }),
    call(january + 3 * day, { organizationId: other.organizationId, cost: 1_000_000 }),
    ...Array.from({ length: 2100 }, (_, which) => call(february + which, { modelId: `m${which}`, cost: 0 })),
  ])
  await store.close()
})
afterAll(() => app[Symbol.asyncDispose]())

async function usage(query: string, { organization = app.organizationId, token = app.secret } = {}) {
  const response = await app.fetch(`/api/organizations/${organization}/usage${query}`, { token })
  const text = await response.text()
  return {
    status: response.status,
    headers: response.headers,
    text,
    body: response.headers.get('content-type')?.startsWith('application/json')
      ? (JSON.parse(text) as Answer)
      : (undefined as never),
  }
}
const times = `start_time=${january}&end_time=${february}`

test('usage has totals, and a result for each group of a bucket', async () => {
  const { status, body } = await usage(`?${times}&bucket_width=month&group_by[]=model_id&group_by[]=status`)
  expect(status).toBe(200)
  expect(body).toMatchObject({
    organization_id: app.organizationId,
    start_time: january,
    end_time: february,
    currency: 'USD',
    totals: { requests: 3, jobs: 0, failed: 1, images: 2, gpu_seconds: 1.5, audio_seconds: 0.5 },
    has_more: false,
    next_page: null,
  })
  expect(body.buckets).toHaveLength(1)
  expect(
    body.buckets[0]!.results.map(({ model_id, status: how, requests, token_id, day: at }) => [
      model_id,
      how,
      requests,
      token_id,
      at,
    ]),
  ).toEqual([
    ['@sum(A1)', 'completed', 1, null, null],
    ['qwen', 'completed', 1, null, null],
    ['qwen', 'failed', 1, null, null],
  ])
})

test('buckets without usage are listed too, and pages follow each other', async () => {
  const first = await usage(`?${times}`)
  expect(first.body.buckets).toHaveLength(31)
  expect(first.body.buckets.filter(({ results }) => results.length > 0).map(({ start_time }) => start_time)).toEqual([
    january,
    january + 3 * day,
  ])
  const page = await usage(`?${times}&limit=2`)
  expect(page.body).toMatchObject({ has_more: true, totals: { requests: 3 } })
  const next = await usage(`?${times}&limit=2&page=${page.body.next_page}`)
  expect(next.body.buckets.map(({ start_time }) => start_time)).toEqual([january + 2 * day, january + 3 * day])
})

test('filters take one value, several, or a list with commas', async () => {
  for (const filter of ['models=qwen', 'models[]=qwen', 'models=qwen,none', 'models=qwen&models=none'])
    expect((await usage(`?${times}&${filter}`)).body.totals, filter).toMatchObject({ requests: 2 })
  expect((await usage(`?${times}&token_ids=tok_b&tasks=std/chat-completion`)).body.totals).toMatchObject({
    requests: 1,
  })
  expect((await usage(`?${times}&user_ids=user_none`)).body.totals).toMatchObject({ requests: 0 })
})

test('minutes are those of the ledger', async () => {
  const { body } = await usage(`?start_time=${january}&end_time=${january + 120}&bucket_width=1m&group_by=model_id`)
  expect(body.buckets.map(({ results }) => results.map(({ model_id, cost }) => [model_id, cost]))).toEqual([
    [],
    [['qwen', 0.25]],
  ])
})

test.each([
  ['bucket_width=2d', 'bucket_width'],
  [`start_time=${february}&end_time=${january}`, 'end_time'],
  [`start_time=${january}&end_time=${january}`, 'end_time'],
  ['start_time=-1', 'start_time'],
  ['start_time=yesterday', 'start_time'],
  ['end_time=999999999999999', 'end_time'],
  ['group_by=colour', 'group_by'],
  ['group_by[x]=model_id', 'group_by'],
  [`${times}&bucket_width=1m`, 'bucket_width'],
  ['limit=0', 'limit'],
  ['limit=400', 'limit'],
  ['page=nothing', 'page'],
  [`${times}&page=${january + 1}.0`, 'page'],
  [`${times}&page=${february}.0`, 'page'],
  ['format=xml', 'format'],
  [`models=${'a,'.repeat(101)}b`, 'models'],
  ['colour=red', 'colour'],
])('a bad parameter is refused with its name: %s', async (query, param) => {
  const { status, body } = await usage(`?${query}`)
  expect([status, body.error.param?.replace(/[.[].*/, '')]).toEqual([400, param])
})

test('an organization reads its own usage, the owner of the machine all', async () => {
  const own = await usage(`?${times}`, { organization: other.organizationId, token: other.secret })
  expect(own.body.totals).toMatchObject({ requests: 1, cost: 1 })
  const foreign = await usage(`?${times}`, { token: other.secret })
  expect([foreign.status, foreign.body.error.code]).toEqual([403, 'organization_mismatch'])
  const unknown = await usage('', { organization: 'org_none', token: other.secret })
  expect([unknown.status, unknown.body.error.code]).toEqual([403, 'organization_mismatch'])
  expect((await usage(`?${times}`, { organization: other.organizationId })).body.totals).toMatchObject({ requests: 1 })
  const missing = await usage('', { organization: 'org_none' })
  expect([missing.status, missing.body.error.code]).toEqual([404, 'not_found'])
})

test('CSV has all rows under a header, and no cell that a spreadsheet runs', async () => {
  const { status, headers, text } = await usage(`?${times}&format=csv&group_by=model_id`)
  expect([status, headers.get('content-type')]).toEqual([200, 'text/csv; charset=utf-8; header=present'])
  expect(headers.get('content-disposition')).toContain(`usage-${app.organizationId}.csv`)
  const lines = text.split('\r\n')
  expect(lines[0]).toBe(
    'start_time,end_time,model_id,requests,jobs,failed,input_tokens,cached_tokens,output_tokens,reasoning_tokens,images,video_seconds,audio_seconds,characters,documents,gpu_seconds,energy_wh,cost,queue_seconds,run_seconds',
  )
  expect(lines.slice(1).map(line => line.split(',').slice(0, 5).join())).toEqual([
    '2026-01-01T00:00:00Z,2026-01-02T00:00:00Z,qwen,1,0',
    "2026-01-04T00:00:00Z,2026-01-05T00:00:00Z,'@sum(A1),1,0",
    '2026-01-04T00:00:00Z,2026-01-05T00:00:00Z,qwen,1,0',
    '',
  ])
  const long = await usage(`?start_time=${february}&end_time=${february + 60 * day}&format=csv&group_by=model_id`)
  const models = long.text
    .trimEnd()
    .split('\r\n')
    .slice(1)
    .map(line => line.split(',')[2])
  expect(models).toHaveLength(2100)
  expect(new Set(models).size).toBe(2100)
  expect((await usage('?format=csv&limit=0')).status).toBe(400)
})

test('a job counts when it has ended, and after it was deleted', async () => {
  const body = { task: 'std/embeddings', model_id: 'fake', inputs: { input: 'hi' } }
  const { id } = (await (await app.fetch('/api/jobs', { body })).json()) as { id: string }
  const ended = (await (await app.fetch(`/api/jobs/${id}?wait=40`)).json()) as { status: string }
  expect(ended.status).toBe('completed')
  const now = async () => (await usage('?models=fake&group_by=token_id&bucket_width=1h')).body
  const before = await now()
  expect(before.totals).toMatchObject({ requests: 0, jobs: 1, failed: 0 })
  expect(before.end_time * 1000).toBeGreaterThan(Date.now())
  expect((await app.fetch(`/api/jobs/${id}`, { method: 'DELETE' })).status).toBe(200)
  expect((await now()).totals).toEqual(before.totals)
})

test('the monthly limit is shown, and the month for which it holds', async () => {
  expect((await usage('')).body.spend_limit).toMatchObject({ monthly_limit: null, remaining: null, hard: true })
  const connection = openDatabase(join(app.dataDir, 'infer.db'))
  connection.prepare('UPDATE organizations SET monthly_spend_limit = 2500000 WHERE id = ?').run(other.organizationId)
  connection.close()
  const { spend_limit: limit } = (await usage(`?${times}`, { organization: other.organizationId })).body
  expect(limit).toMatchObject({ monthly_limit: 2.5, held: 0, hard: true })
  expect(limit['period_start']! * 1000).toBeLessThanOrEqual(Date.now())
  expect(limit['period_end']! * 1000).toBeGreaterThan(Date.now())
})
