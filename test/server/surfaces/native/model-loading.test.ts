import { writeFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { fakeModel, startApp, type TestApp } from '../../../_app.ts'
import { makeOrganization } from '../../_organization.ts'

let app: TestApp
beforeAll(async () => {
  app = await startApp({
    models: [
      fakeModel('owner/name:q4', ['--id', 'mine'], { env: { SECRET: 'hunter2' }, description: 'Two parts.' }),
      fakeModel('broken', ['--exit', '3']),
      fakeModel('hangs', ['--hang']),
      fakeModel('off', [], { enabled: false }),
      fakeModel('kept', [], { replicas: { min: 1, max: 1 } }),
    ],
  })
})
afterAll(() => app[Symbol.asyncDispose]())

interface Body {
  status: string
  workers: { ready: number }
  error: { code: string; message: string }
}
const ask = async (method: 'GET' | 'POST', path: string, token?: string): Promise<Body & { http: number }> => {
  const response = await app.fetch(path, { method, ...(token ? { token } : {}) })
  return { http: response.status, ...((await response.json()) as Body) }
}
const tokenWith = async (more: object): Promise<string> => {
  const made = await app.fetch(`/api/organizations/${app.organizationId}/tokens`, { body: { name: 'x', ...more } })
  return ((await made.json()) as { secret: string }).secret
}

test.each([
  ['as it is', 'owner/name:q4'],
  ['encoded', 'owner%2Fname%3Aq4'],
])('an id with a slash, %s: load, read, unload', async (_, id) => {
  expect(await ask('POST', `/api/models/${id}/load?wait=30`)).toMatchObject({
    http: 200,
    model_id: 'owner/name:q4',
    status: 'warm',
    workers: { ready: 1, loading: 0 },
  })
  const detail = await ask('GET', `/api/models/${id}`)
  expect(detail).toMatchObject({
    http: 200,
    id: 'owner/name:q4',
    object: 'model.detail',
    settings: { engine: 'custom', description: 'Two parts.', env: { SECRET: '***' }, max_queue: 512 },
    status: { status: 'warm' },
    engines: [{ model_id: 'owner/name:q4', state: 'ready', pid: expect.any(Number) as number, memory_bytes: 16 << 20 }],
  })
  expect((detail as unknown as { engines: { command: string[] }[] }).engines[0]!.command).toContain('mine')
  expect(JSON.stringify(detail)).not.toContain('hunter2')

  expect(await ask('POST', `/api/models/${id}/unload?wait=30`)).toMatchObject({
    http: 200,
    status: 'cold',
    workers: { ready: 0, loading: 0 },
  })
  expect(await ask('GET', `/api/models/${id}`)).toMatchObject({ engines: [] })
})

test('the plan for a request names only models that the token may use, and loads nothing', async () => {
  const token = await tokenWith({ scopes: ['user:read'], models: ['kept', 'off'] })
  expect(await ask('GET', '/api/plan?model=owner/name:q4')).toMatchObject({
    http: 200,
    object: 'model.plan',
    model_id: 'owner/name:q4',
    status: 'load',
    detail: expect.stringContaining("A request loads 'owner/name:q4' on cpu") as string,
    eta_seconds: expect.any(Number) as number,
    evict: [],
    devices: [{ id: 'cpu', needed_bytes: 16 << 20 }],
    figures: { memory_bytes: 16 << 20, memory_from: 'configured' },
  })
  expect(await ask('GET', '/api/models/owner/name:q4')).toMatchObject({ status: { status: 'cold' } })
  await ask('POST', '/api/models/owner/name:q4/load?wait=30')
  expect(await ask('GET', '/api/plan?model=owner/name:q4')).toMatchObject({ status: 'ready', eta_seconds: 0 })
  const { devices } = (await ask('GET', '/api/plan?model=kept', token)) as unknown as {
    devices: { engines: { model_id: string | null }[] }[]
  }
  const named = devices[0]!.engines.map(({ model_id }) => model_id)
  expect(new Set(named)).toEqual(new Set(['kept', null]))
  expect(await ask('GET', '/api/plan?model=off', token)).toMatchObject({
    status: 'refused',
    detail: "The model 'off' is disabled here.",
  })
  expect(await ask('GET', '/api/plan?model=owner/name:q4', token)).toMatchObject({
    http: 404,
    error: { code: 'model_not_found' },
  })
})

test('a load that takes longer than the wait continues; a second request joins it', async () => {
  for (let asked = 0; asked < 3; asked++)
    expect(await ask('POST', '/api/models/hangs/load?wait=0.05')).toMatchObject({
      http: 200,
      status: 'loading',
      queue_depth: 0,
      workers: { ready: 0, loading: 1 },
    })
})

test('a caller who disconnects is no server error, and the load continues', async () => {
  const client = new AbortController()
  const left = app
    .fetch('/api/models/hangs/load?wait=60', { method: 'POST', signal: client.signal })
    .catch((thrown: Error) => thrown.name)
  await expect.poll(() => ask('GET', '/api/system/status')).toMatchObject({ requests: 2 })
  client.abort()
  expect(await left).toBe('AbortError')
  await expect.poll(() => ask('GET', '/api/system/status')).toMatchObject({ requests: 1 })
  expect(await ask('GET', '/api/models/hangs')).toMatchObject({ status: { status: 'loading' } })
})

test('a failed load gives the reason, and so does the status afterwards', async () => {
  const failed = await ask('POST', '/api/models/broken/load?wait=30')
  expect(failed).toMatchObject({ http: 503, error: { code: 'no_capacity' } })
  expect(failed.error.message).toMatch(/'broken' cannot be started: .*\(3\).*out of memory/)
  expect(await ask('GET', '/api/models/broken')).toMatchObject({
    status: { reason: expect.stringContaining('out of memory') as string },
  })
})

test('a model with replicas.min that was unloaded stays unloaded until the next request', async () => {
  await ask('POST', '/api/models/kept/load?wait=30')
  expect(await ask('POST', '/api/models/kept/unload?wait=30')).toMatchObject({ status: 'cold' })
  await app.fetch('/std/v1/embeddings', { body: { model: 'kept', input: 'a' } })
  expect(await ask('GET', '/api/models/kept')).toMatchObject({ status: { status: 'warm' } })
})

test('unload waits for running requests', async () => {
  await ask('POST', '/api/models/kept/load?wait=30')
  const running = await app.fetch('/std/v1/chat/completions', {
    body: { model: 'kept', stream: true, messages: [{ role: 'user', content: 'mode:stream,tokens=20,rate=20' }] },
  })
  expect(await ask('POST', '/api/models/kept/unload?wait=0.05')).toMatchObject({ http: 200, workers: { ready: 1 } })
  expect(await running.text()).toMatch(/\[DONE\]\n\n$/)
  expect(await ask('POST', '/api/models/kept/unload?wait=30')).toMatchObject({ workers: { ready: 0 } })
})

test.each([
  ['POST', '/api/models/none/load', 404, 'model_not_found'],
  ['GET', '/api/plan?model=none', 404, 'model_not_found'],
  ['GET', '/api/plan', 400, 'missing_required_parameter'],
  ['POST', '/api/models/none/unload', 404, 'model_not_found'],
  ['GET', '/api/models/none/of/these', 404, 'model_not_found'],
  ['POST', '/api/models/off/load', 409, 'conflict'],
  ['POST', '/api/models/kept/load?wait=forever', 400, 'invalid_type'],
  ['POST', '/api/models/kept/load?wait=1000', 400, 'invalid_value'],
] as const)('%s %s: %i %s', async (method, path, http, code) => {
  expect(await ask(method, path)).toMatchObject({ http, error: { code } })
})

test('a token may not load or unload a model that it may not use, and does not learn that it exists', async () => {
  const token = await tokenWith({ scopes: ['admin:write', 'admin:read'], models: ['kept'] })
  expect(await ask('POST', '/api/models/kept/load?wait=30', token)).toMatchObject({ http: 200 })
  for (const [method, path] of [
    ['POST', '/api/models/hangs/unload'],
    ['GET', '/api/models/hangs'],
  ] as const) {
    const refused = await ask(method, path, token)
    const absent = await ask(method, path.replace('hangs', 'none'), token)
    expect([refused.http, refused.error.message.replace('hangs', 'none')]).toEqual([404, absent.error.message])
  }
})

test("another organization's token reads no settings and loads no model, whatever its scopes", async () => {
  const { secret } = await makeOrganization(app, {})
  await ask('POST', '/api/models/kept/load?wait=30')
  for (const [method, path] of [
    ['GET', '/api/models/kept'],
    ['POST', '/api/models/kept/load'],
    ['POST', '/api/models/kept/unload'],
  ] as const)
    expect(await ask(method, path, secret)).toMatchObject({ http: 403, error: { code: 'organization_mismatch' } })
  expect(await ask('GET', '/api/models/kept')).toMatchObject({ status: { status: 'warm' } })
  expect(await ask('GET', '/api/model-status', secret)).not.toHaveProperty('configuration')
})

test("a token that may read the configuration's state sees it in the model status", async () => {
  const user = await tokenWith({ scopes: ['user:read'] })
  expect(await ask('GET', '/api/model-status', user)).not.toHaveProperty('configuration')
  expect(await ask('GET', '/api/model-status')).toMatchObject({ configuration: { fault: null, restart_for: [] } })
  const line = app.logged('keeps the previous one')
  writeFileSync(app.configPath, 'models: 3\n')
  await line
  app.errors.splice(0)
  expect(await ask('GET', '/api/model-status')).toMatchObject({
    configuration: { fault: expect.stringMatching(/infer\.yaml:1:1: 'models'/) as string },
  })
  expect(await ask('GET', '/api/model-status', user)).not.toHaveProperty('configuration')
})

test('the configuration schema is public for editors', async () => {
  const response = await app.fetch('/infer.schema.json', { token: null })
  expect(response.status).toBe(200)
  expect(await response.json()).toMatchObject({ $schema: 'https://json-schema.org/draft/2020-12/schema' })
})
