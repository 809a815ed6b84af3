import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { newId } from '../../../../core/ids.ts'
import { startApp, type TestApp } from '../../../_app.ts'
import { makeOrganization } from '../../_organization.ts'
import { badly, openScriptedEngine, type ScriptedEngine, well } from '../../_scripted-engine.ts'

interface Job {
  id: string
  status: string
  kind: string
  task: string
  model_id: string
  metadata: Record<string, string> | null
  created_at: number
  organization_id: string
  prompt: string | null
  thumbnail_url: string | null
}
interface Page {
  jobs: Job[]
  has_more: boolean
  next_cursor: string | null
  error?: { code: string; param: string }
}

let app: TestApp
let engine: ScriptedEngine
/** Newest first. */
const all: string[] = []
const ids: Record<string, string> = {}

beforeAll(async () => {
  engine = await openScriptedEngine((seen, response) => {
    const said = String(seen.body.input)
    if (said.startsWith('hold')) return
    if (said.startsWith('400')) return badly(response, 400, 'no')
    well(seen, response)
  })
  app = await startApp({ models: [engine.model('far'), engine.model('near')] })
  const make = async (name: string, body: object) => {
    const made = await app.fetch('/api/jobs', { body: { task: 'std/embeddings', model_id: 'far', ...body } })
    ids[name] = ((await made.json()) as { id: string }).id
    all.unshift(ids[name])
    if (!name.startsWith('hold')) await app.fetch(`/api/jobs/${ids[name]}?wait=30`)
  }
  await make('done', { inputs: { input: 'a' }, metadata: { ref: '42', 'a.b': '1' } })
  await make('score', { task: 'std/score', inputs: { text_1: 'a', text_2: 'b' }, metadata: { ref: '42' } })
  await make('failed', { inputs: { input: '400' }, metadata: { ref: '43' } })
  const call = await app.fetch('/std/v1/embeddings', { body: { model: 'near', input: 'a' } })
  await call.text()
  ids.call = call.headers.get('x-job-id')!
  all.unshift(ids.call)
  await make('near', { model_id: 'near', inputs: { input: 'a' } })
  await make('hold', { inputs: { input: 'hold' } })
  await engine.until(seen => seen.some(({ body }) => body.input === 'hold'))
  await make('hold back', { inputs: { input: 'a' }, not_before: Math.floor(Date.now() / 1000) + 3600 })
  await app.fetch(`/api/jobs/${ids['hold back']}/cancel`, { method: 'POST' })
  await vi.waitUntil(async () => (await list('kind=sync')).jobs.length === 1, { timeout: 40_000 })
})
afterAll(async () => {
  await app[Symbol.asyncDispose]()
  await engine[Symbol.asyncDispose]()
})

async function list(query = '', token = app.secret): Promise<Page> {
  return (await (await app.fetch(`/api/jobs?${query}`, { token })).json()) as Page
}
const names = ({ jobs }: Page) => jobs.map(({ id }) => Object.keys(ids).find(name => ids[name] === id))

test('all jobs and calls, newest first, without inputs and results', async () => {
  const page = await list()
  expect(page.jobs.map(({ id }) => id)).toEqual(all)
  expect([page.has_more, page.next_cursor]).toEqual([false, null])
  for (const job of page.jobs) {
    expect(job).not.toHaveProperty('inputs')
    expect(job).not.toHaveProperty('result')
    const one = (await (await app.fetch(`/api/jobs/${job.id}`)).json()) as Record<string, unknown>
    const { inputs: _, result: __, ...rest } = one
    // The members that change between two reads.
    const still = { updated_at: 0, waiting_for: 0, eta_seconds: 0 }
    const { prompt: _prompt, thumbnail_url: _thumbnail, ...facts } = job
    expect({ ...facts, ...still }).toEqual({ ...rest, ...still })
  }
})

test.each<[string, string[]]>([
  ['status=completed', ['near', 'call', 'score', 'done']],
  ['status=failed', ['failed']],
  ['status=processing', ['hold']],
  ['status=cancelled', ['hold back']],
  ['status=pending', []],
  ['task=std/score', ['score']],
  ['model_id=near', ['near', 'call']],
  ['model_id=none', []],
  ['kind=sync', ['call']],
  ['kind=async&status=completed', ['near', 'score', 'done']],
  ['metadata[ref]=42', ['score', 'done']],
  ['metadata%5Bref%5D=42&task=std/embeddings', ['done']],
  ['metadata[ref]=42&metadata[a.b]=1', ['done']],
  ['metadata[ref]=4', []],
  ['metadata[constructor]=1', []],
  ['created_before=1', []],
  ['created_after=9999999999', []],
  ['created_after=1&created_before=9999999999&status=failed', ['failed']],
])('with %s', async (query, expected) => {
  expect(names(await list(query))).toEqual(expected)
})

test('created_after and created_before exclude the second that they name', async () => {
  const { created_at } = (await list('status=failed')).jobs[0]!
  const found = async (query: string) => names(await list(query)).includes('failed')
  expect(await found(`created_after=${created_at}`)).toBe(false)
  expect(await found(`created_after=${created_at - 1}`)).toBe(true)
  expect(await found(`created_before=${created_at}`)).toBe(false)
  expect(await found(`created_before=${created_at + 1}`)).toBe(true)
})

test.each([1, 2, 3, 100])('page by page, %i at a time, each is listed once', async limit => {
  const seen: string[] = []
  let after: string | null = ''
  while (after !== null) {
    const page: Page = await list(`limit=${limit}${after && `&after=${after}`}`)
    expect(page.jobs.length).toBeLessThanOrEqual(limit)
    expect(page.has_more).toBe(page.next_cursor !== null)
    seen.push(...page.jobs.map(({ id }) => id))
    after = page.next_cursor
  }
  expect(seen).toEqual(all)
})

test('the id of the last listed job is a cursor too', async () => {
  expect((await list(`after=${all[2]}`)).jobs.map(({ id }) => id)).toEqual(all.slice(3))
})

test('are of the own organization only', async () => {
  const other = await makeOrganization(app)
  expect(await list('', other.secret)).toEqual({ jobs: [], has_more: false, next_cursor: null })
  expect((await list(`after=${all[0]}`, other.secret)).jobs).toEqual([])
})

test('a time in milliseconds is refused by name', async () => {
  const refusal = async (path: string, body: object) => {
    const answer = await app.fetch(path, { body })
    return [answer.status, ((await answer.json()) as { error: { message: string } }).error.message]
  }
  const job = { task: 'std/embeddings', model_id: 'far', inputs: { input: 'x' } }
  const says = (name: string) => [
    400,
    `'${name}' is in Unix seconds; 1790000000000 looks like milliseconds. Divide it by 1000.`,
  ]
  expect(await refusal('/api/jobs', { ...job, not_before: 1_790_000_000_000 })).toEqual(says('not_before'))
  const me = (await (await app.fetch('/api/me')).json()) as { organization: { id: string } }
  const token = { name: 'late', expires_at: 1_790_000_000_000 }
  expect(await refusal(`/api/organizations/${me.organization.id}/tokens`, token)).toEqual(says('expires_at'))
})

describe('invalid queries', () => {
  test.each([
    ['limit=0', 'limit'],
    ['limit=101', 'limit'],
    ['limit=many', 'limit'],
    ['after=x', 'after'],
    [`after=${newId('tok')}`, 'after'],
    ['status=done', 'status'],
    ['status=failed&status=pending', 'status'],
    ['task=std/telepathy', 'task'],
    ['kind=both', 'kind'],
    ['created_after=yesterday', 'created_after'],
    ['created_before=-1', 'created_before'],
    ['created_before=1790000000000', 'created_before'],
    ['metadata=42', 'metadata'],
    ['metadata[__proto__]=1', 'metadata'],
  ])('%s', async (query, param) => {
    const { error } = await list(query)
    expect([error?.param, error?.code]).toEqual([param, expect.stringMatching(/^invalid_/)])
  })
})

describe('prompts', () => {
  test('are shown of jobs whose inputs are kept', async () => {
    const prompts = (await list()).jobs.map(({ kind, prompt }) => [kind, prompt])
    expect(prompts).toContainEqual(['async', '400'])
    expect(prompts).toContainEqual(['sync', null])
    expect((await list()).jobs.every(job => job.thumbnail_url === null)).toBe(true)
  })

  test('are searched by words, in any case', async () => {
    expect(names(await list('q=HOLD'))).toEqual(['hold'])
    expect(names(await list('q=400&status=failed'))).toEqual(['failed'])
    expect(names(await list('q=400&status=completed'))).toEqual([])
    expect(names(await list('q=%20'))).toEqual(names(await list()))
  })

  test('are not searched where that cannot be', async () => {
    for (const query of ['q=a&organization=all', 'q=a&workflow_execution_id=exec_1'])
      expect(await list(query)).toMatchObject({ error: { code: 'invalid_value', param: 'q' } })
  })
})

describe('jobs of several organizations', () => {
  test('are listed together for the owner of the machine, without prompts of others', async () => {
    const other = await makeOrganization(app)
    const body = { task: 'std/embeddings', model_id: 'near', inputs: { input: 'theirs' } }
    const { id } = (await (await app.fetch('/api/jobs', { body, token: other.secret })).json()) as Job
    ids.theirs = id
    const together = await list('organization=all')
    expect(names(together)).toEqual(['theirs', ...names(await list())])
    expect(together.jobs[0]).toMatchObject({ organization_id: other.organizationId, prompt: null })
    expect(together.jobs.find(job => job.id === ids.failed)?.prompt).toBe('400')
    const turned: (string | undefined)[] = []
    for (let after = ''; ; ) {
      const page = await list(`organization=all&limit=2${after}`)
      turned.push(...names(page))
      if (page.next_cursor === null) break
      after = `&after=${page.next_cursor}`
    }
    expect(turned).toEqual(names(together))
    expect(names(await list(`organization=${other.organizationId}`))).toEqual(['theirs'])
    expect(names(await list(`organization=${other.organizationId}`, other.secret))).toEqual(['theirs'])
  })

  test('are refused to all others', async () => {
    const other = await makeOrganization(app)
    const own = (await list()).jobs[0]!.organization_id
    for (const query of ['organization=all', `organization=${own}`, 'organization=org_absent'])
      expect((await list(query, other.secret)).error?.code).toBe('organization_mismatch')
    const reader = { name: 'reader', scopes: ['user:read'] }
    const made = await app.fetch(`/api/organizations/${own}/tokens`, { body: reader })
    const { secret } = (await made.json()) as { secret: string }
    expect((await list('organization=all', secret)).error?.code).toBe('insufficient_scope')
    expect((await list('organization=org_absent')).error?.code).toBe('not_found')
  })
})
