import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../../_app.ts'
import { installUv } from '../../../fixtures/uv.ts'

const path = process.env.PATH
const programs = mkdtempSync(join(tmpdir(), 'infer-engines-'))
let app: TestApp
beforeAll(async () => {
  installUv(programs)
  process.env.PATH = `${programs}:${path}`
  app = await startApp()
})
afterAll(async () => {
  process.env.PATH = path
  await app[Symbol.asyncDispose]()
  rmSync(programs, { recursive: true })
})

// oxlint-disable-next-line no-explicit-any
async function ask(method: string, of: string, token?: string): Promise<{ status: number; body: any }> {
  const answered = await app.fetch(of, { method, ...(token === undefined ? {} : { token }) })
  return { status: answered.status, body: await answered.json() }
}
const python = '/api/engine-setups/python'
const ended = () => expect.poll(async () => (await ask('GET', python)).body.status, { timeout: 60_000 })
async function listed(engine: string, setup: string) {
  const { engines, setups } = (await ask('GET', '/api/engines')).body
  return {
    engine: engines.find((one: { engine: string }) => one.engine === engine),
    setup: setups.find((one: { name: string }) => one.name === setup),
  }
}

test('engines say whether they are there, what they can run here, and how they are installed', async () => {
  const { engine, setup } = await listed('python', 'python')
  expect(engine).toMatchObject({
    state: 'missing',
    version: null,
    origin: null,
    tasks: expect.arrayContaining(['std/chat-completion', 'slug/text-to-image']) as string[],
    blocked: null,
    advice: 'Install it with: infer engine setup python or infer engine setup speech',
    setups: ['python', 'speech'],
  })
  expect(setup).toMatchObject({
    state: 'missing',
    version: null,
    source: 'PyPI',
    license: null,
    run: null,
    versions: [],
  })
  expect((await listed('gguf', 'vllm')).engine).toMatchObject({ state: 'built_in', origin: 'infer', advice: null })
  expect((await ask('GET', python)).status).toBe(404)
})

test('a setup shows its steps and output, is begun once, stopped, continued, and in use at once', async () => {
  writeFileSync(join(programs, 'faults', 'hold'), '')
  expect((await ask('POST', python)).status).toBe(202)
  const second = await ask('POST', '/api/engine-setups/vllm')
  expect([second.status, second.body.error.message]).toEqual([
    409,
    "'python' is being installed. Wait for its end, or cancel it.",
  ])
  await expect
    .poll(async () => (await ask('GET', python)).body, { timeout: 60_000 })
    .toMatchObject({
      status: 'running',
      step: expect.stringMatching(/^Installing/) as string,
      log: expect.arrayContaining([expect.stringMatching(/^\+ diffusers==/)]) as string[],
    })
  expect((await listed('python', 'python')).setup.run).toMatchObject({ status: 'running' })
  expect((await ask('DELETE', python)).status).toBe(200)
  await ended().toBe('cancelled')
  expect((await ask('DELETE', python)).status).toBe(404)
  expect((await listed('python', 'python')).setup.state).toBe('incomplete')

  rmSync(join(programs, 'faults', 'hold'))
  expect((await ask('POST', python)).status).toBe(202)
  await ended().toBe('completed')
  expect((await ask('GET', python)).body.detail).toMatch(/^python \S+ is installed\.$/)
  const { engine, setup } = await listed('python', 'python')
  expect(setup).toMatchObject({ state: 'complete', version: expect.stringMatching(/-[0-9a-f]{8}$/) as string })
  expect(setup.versions).toMatchObject([{ version: setup.version, is_current: true, state: 'complete' }])
  expect(setup.versions[0].bytes).toBeGreaterThan(0)
  expect(setup.versions[0].path).toContain('/engines/python')
  expect(engine).toMatchObject({ state: 'installed', origin: 'setup', version: setup.version, advice: null })
})

test('a setup that fails says why; there is no other name, and nobody but the owner of the machine', async () => {
  writeFileSync(join(programs, 'faults', 'stop-torch'), '')
  expect((await ask('POST', '/api/engine-setups/vllm')).status).toBe(202)
  const failed = async () => (await ask('GET', '/api/engine-setups/vllm')).body
  await expect.poll(async () => (await failed()).status, { timeout: 60_000 }).toBe('failed')
  expect((await failed()).detail).toContain('The package index cannot be reached.')

  const unknown = await ask('POST', '/api/engine-setups/gguf')
  expect([unknown.status, unknown.body.error.message]).toEqual([
    404,
    expect.stringMatching(/^There is no setup 'gguf'\. Setups: llama-server, /),
  ])

  const { organization } = (await (await app.fetch('/api/organizations', { body: { name: 'guests' } })).json()) as {
    organization: { id: string }
  }
  const created = await app.fetch(`/api/organizations/${organization.id}/tokens`, {
    body: { name: 'guest', scopes: ['admin:read', 'admin:write'] },
  })
  const { secret } = (await created.json()) as { secret: string }
  const refused = await Promise.all([
    ask('GET', '/api/engines', secret),
    ...['GET', 'POST', 'DELETE'].map(method => ask(method, python, secret)),
  ])
  expect(refused.map(({ status }) => status)).toEqual([403, 403, 403, 403])
})
