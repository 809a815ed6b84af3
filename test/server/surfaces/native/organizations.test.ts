import type { ServerResponse } from 'node:http'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openOrganizations } from '../../../../core/accounts/organizations.ts'
import { newId } from '../../../../core/ids.ts'
import { openLog } from '../../../../core/log.ts'
import { openAdminStore } from '../../../../core/store/sqlite/admin.ts'
import { theServer } from '../../../../core/store/store.ts'
import { startApp, type TestApp } from '../../../_app.ts'
import { openScriptedEngine, type ScriptedEngine, well } from '../../_scripted-engine.ts'

let app: TestApp
let engine: ScriptedEngine
/** The answers that the engine owes, by the text of the request. */
const held = new Map<string, ServerResponse>()

beforeAll(async () => {
  engine = await openScriptedEngine((seen, response) => {
    const said = String(seen.body.input ?? seen.body.messages?.[0]?.content)
    if (said.startsWith('hold')) held.set(said, response)
    else well(seen, response)
  })
  app = await startApp({ models: [engine.model('far', { concurrency: 2 })] })
})
afterAll(async () => {
  await app[Symbol.asyncDispose]()
  await engine[Symbol.asyncDispose]()
})

// oxlint-disable-next-line no-explicit-any
type Json = any
const read = (text: string): Json => JSON.parse(text)
const base = '/api/organizations'
async function ask(method: string, path: string, body?: unknown, token: string = app.secret) {
  const response = await app.fetch(path, { method, token, ...(body === undefined ? {} : { body }) })
  const text = await response.text()
  return { status: response.status, body: read(text), text }
}
async function ok(method: string, path: string, body?: unknown, token?: string): Promise<Json> {
  const answer = await ask(method, path, body, token)
  expect(answer.status, `${method} ${path} ${answer.text}`).toBeLessThan(300)
  return answer.body
}
const all = ['user:read', 'user:write', 'admin:read', 'admin:write']
/** A new organization with a token that has all scopes. */
async function make(fields: object = {}): Promise<{ id: string; path: string; name: string; secret: string }> {
  const { organization } = await ok('POST', base, { name: newId('org'), ...fields })
  const path = `${base}/${organization.id}`
  const { secret } = await ok('POST', `${path}/tokens`, { name: 'first', scopes: all })
  return { id: organization.id, path, name: organization.name, secret }
}
const submit = async (secret: string, input: string, more: object = {}): Promise<string> =>
  (await ok('POST', '/api/jobs', { task: 'std/embeddings', model_id: 'far', inputs: { input }, ...more }, secret)).id
const jobOf = (id: string, secret: string): Promise<Json> => ok('GET', `/api/jobs/${id}`, undefined, secret)
const running = (input: string) => engine.until(seen => seen.some(({ body }) => body.input === input))
function answer(input: string): void {
  held.get(input)!.writeHead(200, { 'content-type': 'application/json' })
  held.get(input)!.end(JSON.stringify({ data: [{ index: 0, embedding: [1] }], usage: { prompt_tokens: 1 } }))
}

describe('the owner of the machine', () => {
  test('creates organizations with a plan and limits, and reads and changes them', async () => {
    const { organization } = await ok('POST', base, {
      name: 'research',
      plan: 'pro',
      share: 3,
      region: 'EU',
      limits: { monthly_spend_limit: 12.5, pending_jobs: 0 },
    })
    expect(organization).toMatchObject({
      id: expect.stringMatching(/^org_/),
      name: 'research',
      plan: 'pro',
      status: 'active',
      share: 3,
      region: 'EU',
      limits: { monthly_spend_limit: 12.5, pending_jobs: 0, api_requests_per_minute: null },
    })
    const path = `${base}/${organization.id}`
    expect(await ok('GET', path)).toEqual({ organization })
    const changed = await ok('PATCH', path, { plan: 'free', share: null, limits: { pending_jobs: null } })
    expect(changed.organization).toMatchObject({ name: 'research', plan: 'free', share: null, region: 'EU' })
    expect(changed.organization.limits).toMatchObject({ pending_jobs: null, monthly_spend_limit: 12.5 })
    const { limits } = await ok('PATCH', `${path}/limits`, {
      uploads_per_day: 5,
      monthly_spend_limit: 0,
      local_only: true,
    })
    expect(limits).toMatchObject({ uploads_per_day: 5, monthly_spend_limit: 0, pending_jobs: null, local_only: true })
    const effective = {
      api_requests_per_minute: 60,
      job_submissions_per_minute: 10,
      tokens_per_minute: null,
      concurrent_requests: null,
      pending_jobs: null,
      stored_bytes: null,
      uploads_per_day: 5,
      monthly_spend_limit: 0,
      local_only: true,
    }
    expect(await ok('GET', `${path}/limits`)).toEqual({ plan: 'free', share: 1, limits, effective })
  })

  test('lists all organizations in pages, newest first', async () => {
    const made = [await make(), await make(), await make()].map(({ id }) => id)
    const first = await ok('GET', `${base}?limit=2`)
    const second = await ok('GET', `${base}?limit=2&after=${first.next_cursor}`)
    const ids = [...first.organizations, ...second.organizations].map((one: Json) => one.id)
    expect(ids.slice(0, 3)).toEqual(made.toReversed())
    expect(first).toMatchObject({ has_more: true, next_cursor: made[1] })
  })

  test.each<[string, object, string]>([
    ['a name that is taken', { name: 'default' }, 'conflict'],
    ['no name', { name: '  ' }, 'invalid_value'],
    ['an unknown plan', { plan: 'gold' }, 'invalid_value'],
    ['a share of 0', { share: 0 }, 'invalid_value'],
    ['a negative limit', { limits: { pending_jobs: -1 } }, 'invalid_value'],
    ['an unknown limit', { limits: { jobs: 1 } }, 'unknown_parameter'],
    ['an id of its own', { id: newId('org') }, 'unknown_parameter'],
    ['a status', { status: 'suspended' }, 'unknown_parameter'],
    ['a time of creation', { created_at: 1 }, 'unknown_parameter'],
  ])('cannot create or change one with %s', async (_, fields, code) => {
    const { path, id } = await make()
    for (const [method, to] of [
      ['POST', base],
      ['PATCH', path],
    ] as const) {
      const { status, body } = await ask(method, to, {
        ...(method === 'POST' ? { name: newId('org') } : {}),
        ...fields,
      })
      expect([status, body.error.code]).toEqual([code === 'conflict' ? 409 : 400, code])
    }
    expect((await ok('GET', path)).organization).toMatchObject({ id, status: 'active' })
  })

  test('gives tokens and members to another organization', async () => {
    const { path } = await make()
    const { user } = await ok('POST', `${path}/members`, { name: 'Ada', email: 'Ada@Example.com', role: 'owner' })
    expect(user).toMatchObject({ email: 'ada@example.com', role: 'owner', active_tokens: 0 })
    const { token } = await ok('POST', `${path}/tokens`, { name: 'hers', scopes: all, user_id: user.id })
    expect(token.user_id).toBe(user.id)
  })

  test('cannot rename, suspend or delete its own organization', async () => {
    const own = `${base}/${app.organizationId}`
    for (const [method, path, body] of [
      ['PATCH', own, { name: 'other' }],
      ['POST', `${own}/suspend`, {}],
      ['DELETE', `${own}?force=true`, undefined],
    ] as const)
      expect((await ask(method, path, body)).body.error).toMatchObject({ code: 'conflict' })
    expect((await ok('GET', own)).organization).toMatchObject({ name: 'default', status: 'active' })
  })

  test('is told that an organization does not exist', async () => {
    const absent = `${base}/${newId('org')}`
    for (const [method, path, body] of [
      ['GET', absent, undefined],
      ['PATCH', absent, { name: 'x' }],
      ['DELETE', absent, undefined],
      ['POST', `${absent}/suspend`, {}],
      ['POST', `${absent}/resume`, {}],
      ['PATCH', `${absent}/limits`, {}],
      ['GET', `${absent}/members`, undefined],
      ['GET', `${absent}/audit`, undefined],
      ['GET', `${absent}/tokens`, undefined],
    ] as const)
      expect([path, (await ask(method, path, body)).body.error.code]).toEqual([path, 'not_found'])
  })
})

describe('another organization', () => {
  test('reads and renames itself, and changes nothing else of itself', async () => {
    const { path, secret, id } = await make({ plan: 'pro' })
    expect((await ok('GET', base, undefined, secret)).organizations.map((one: Json) => one.id)).toEqual([id])
    const renamed = await ok('PATCH', path, { name: `${id} renamed` }, secret)
    expect(renamed.organization.name).toBe(`${id} renamed`)
    for (const [method, to, body] of [
      ['PATCH', path, { plan: 'enterprise' }],
      ['PATCH', path, { name: 'x', share: 100 }],
      ['PATCH', path, { region: null }],
      ['PATCH', path, { limits: { pending_jobs: 0 } }],
      ['PATCH', `${path}/limits`, { pending_jobs: 0 }],
      ['POST', `${path}/suspend`, {}],
      ['POST', `${path}/resume`, {}],
      ['DELETE', path, undefined],
      ['POST', base, { name: 'mine' }],
    ] as const) {
      const { status, body: refused } = await ask(method, to, body, secret)
      expect([method, to, status, refused.error.code]).toEqual([method, to, 403, 'organization_mismatch'])
    }
    expect((await ok('GET', path, undefined, secret)).organization).toMatchObject({
      name: `${id} renamed`,
      plan: 'pro',
      region: null,
      share: null,
    })
  })
})

describe('suspended', () => {
  test('its tokens are refused at once, its open streams end within 2 s, and resumed it goes on', async () => {
    const { path, secret } = await make()
    const stream = await app.fetch('/api/events', { token: secret })
    const suspended = await ok('POST', `${path}/suspend`)
    const since = performance.now()
    expect(suspended).toMatchObject({ organization: { status: 'suspended' }, jobs_cancelled: 0 })
    const refused = await ask('GET', '/api/me', undefined, secret)
    expect([refused.status, refused.body.error.code]).toEqual([403, 'organization_disabled'])
    await stream.text()
    expect(performance.now() - since).toBeLessThan(2_000)
    expect((await ok('POST', `${path}/resume`)).organization.status).toBe('active')
    await ok('GET', '/api/me', undefined, secret)
  })

  test('what runs is finished; what waits stays and starts when it is resumed; others are not delayed', async () => {
    const { path, secret } = await make()
    await submit(secret, 'hold the first')
    const inputs = ['hold the first', 'hold the second']
    const ids = [await submit(secret, 'hold the second')]
    for (const input of inputs) await running(input)
    const waiting = await submit(secret, 'after resuming')
    await ok('POST', `${path}/suspend`)
    for (const input of inputs) answer(input)
    // The slots are free now: another organization gets one, the suspended one does not.
    const other = await submit(app.secret, 'of another')
    expect((await ok('GET', `/api/jobs/${other}?wait=20`)).status).toBe('completed')
    expect(engine.seen.some(({ body }) => body.input === 'after resuming')).toBe(false)
    await ok('POST', `${path}/resume`)
    expect((await ok('GET', `/api/jobs/${waiting}?wait=20`, undefined, secret)).status).toBe('completed')
    expect((await jobOf(ids[0]!, secret)).status).toBe('completed')
  })

  test('of an execution the running node is finished and the next one waits', async () => {
    const { path, secret } = await make()
    const node = (input: string) => ({ task: 'std/embeddings', model_id: 'far', inputs: { input } })
    const nodes = { a: node('hold the node'), b: node('the next node') }
    const dag = { nodes, edges: [{ from: 'a', to: 'b' }] }
    const { execution } = await ok('POST', '/api/workflows/run', { dag, input_params: {} }, secret)
    await running('hold the node')
    await ok('POST', `${path}/suspend`)
    answer('hold the node')
    const other = await submit(app.secret, 'between the nodes')
    expect((await ok('GET', `/api/jobs/${other}?wait=20`)).status).toBe('completed')
    expect(engine.seen.some(({ body }) => body.input === 'the next node')).toBe(false)
    await ok('POST', `${path}/resume`)
    await running('the next node')
    const done = await ok('GET', `/api/workflow-executions/${execution.id}?wait=20`, undefined, secret)
    expect(done.execution.status).toBe('completed')
  })

  test('by the command line beside the server, within two seconds', async () => {
    const { id, secret } = await make()
    const log = openLog('error')
    const store = await openAdminStore(app.dataDir, log)
    try {
      await openOrganizations({ store, log }).suspend(id, { cancel: false }, theServer)
    } finally {
      await store.close()
    }
    await expect.poll(async () => (await ask('GET', '/api/me', undefined, secret)).status, { timeout: 2_000 }).toBe(403)
    await ok('POST', `${base}/${id}/resume`)
    await ok('GET', '/api/me', undefined, secret)
  })

  test('with cancel=true running and waiting work is cancelled, and counted', async () => {
    const { path, secret } = await make()
    const ids = [await submit(secret, 'hold to be cancelled')]
    await running('hold to be cancelled')
    ids.push(await submit(secret, 'never', { not_before: 4_000_000_000 }))
    const call = ask('POST', '/std/v1/embeddings', { model: 'far', input: 'hold the call' }, secret)
    await running('hold the call')
    const done = await ok('POST', `${path}/suspend?cancel=true`)
    expect(done).toMatchObject({ jobs_cancelled: 2, executions_cancelled: 0, requests_cancelled: 1 })
    expect((await call).body.error).toMatchObject({
      code: 'cancelled',
      message: expect.stringContaining('with the work of its organization') as string,
    })
    await engine.until(seen => seen.find(({ body }) => body.input === 'hold to be cancelled')?.goneAt !== undefined)
    await ok('POST', `${path}/resume`)
    for (const id of ids) expect((await jobOf(id, secret)).status).toBe('cancelled')
  })
})

describe('deleted', () => {
  test('it is refused while work is unfinished, unless forced; then everything of it ends', async () => {
    const { path, secret, id, name } = await make()
    await ok('POST', `${path}/members`, { name: 'Ada', email: 'ada@example.com' })
    const job = await submit(secret, 'hold until deleted')
    await running('hold until deleted')
    const refused = await ask('DELETE', path)
    expect([refused.status, refused.body.error.code]).toEqual([409, 'conflict'])
    expect(refused.body.error.message).toContain('1 jobs')
    await ok('GET', '/api/me', undefined, secret)
    expect(await ok('DELETE', `${path}?force=true`)).toEqual({
      id,
      object: 'organization',
      deleted: true,
      jobs_cancelled: 1,
      executions_cancelled: 0,
      requests_cancelled: 0,
      tokens_revoked: 1,
      users_removed: 1,
      files_removed: 0,
      workflows_removed: 0,
    })
    expect((await ask('GET', '/api/me', undefined, secret)).body.error.code).toBe('token_revoked')
    await engine.until(seen => seen.find(({ body }) => body.input === 'hold until deleted')?.goneAt !== undefined)
    expect((await ok('GET', path)).organization).toMatchObject({ id, name, status: 'deleted' })
    expect((await ask('DELETE', path)).body.error.code).toBe('conflict')
    expect((await ask('POST', `${path}/resume`)).body.error.code).toBe('conflict')
    expect((await ask('POST', `${path}/tokens`, { name: 'x' })).body.error.code).toBe('conflict')
    const { organization } = await ok('POST', base, { name })
    expect(organization.id).not.toBe(id)
    expect((await ok('GET', `${path}/audit?action=organization.deleted`)).entries).toHaveLength(1)
    expect(job).toMatch(/^job_/)
  })

  test('its workflows are gone', async () => {
    const { path, secret } = await make()
    const dag = { nodes: { a: { task: 'std/embeddings', model_id: 'far', inputs: { input: 'x' } } } }
    await ok('POST', '/api/workflows', { name: 'w', dag }, secret)
    expect(await ok('DELETE', path)).toMatchObject({ workflows_removed: 1, jobs_cancelled: 0 })
  })
})
