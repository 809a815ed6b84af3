import { mkdirSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { tinyChatRandom } from '../../bin/tiny-models.ts'
import { openApp } from '../../cli/server/app.ts'
import { openLog } from '../../core/log.ts'
import { optionalText } from '../../core/optional-file.ts'
import { startApp, type TestApp } from '../_app.ts'
import { temporary } from '../gpu/launcher/_launch.ts'
import { makeOrganization } from './_organization.ts'

const long = (topic: string) => ({ role: 'user', content: `${topic} `.repeat(100).slice(0, 600) })

/** A server with two models of the built-in engine, and the folder of what is saved. */
async function serverWithModels() {
  const source = join(temporary(), 'chat.gguf')
  writeFileSync(source, tinyChatRandom())
  const model = (id: string) => ({ id, engine: 'gguf', source, context_length: 1024, concurrency: 1, devices: 'cpu' })
  const app = await startApp({ models: [model('one'), model('two')] })
  onTestFinished(() => app[Symbol.asyncDispose]())
  return app
}

const saved = ({ dataDir }: TestApp) => realpathSync(join(dataDir, 'run', 'conversations'))
const filesIn = (app: TestApp) =>
  readdirSync(saved(app), { recursive: true, encoding: 'utf8' }).filter(name => name.endsWith('.state'))

type Json = { [key: string]: any } // oxlint-disable-line typescript/no-explicit-any -- answers are looked into freely

interface Turn {
  prompt: number
  cached: number
  text: string
}

async function ask(app: Pick<TestApp, 'fetch'>, model: string, more: object = {}, token?: string): Promise<Turn> {
  const body = { model, messages: [long('apples')], max_tokens: 4, temperature: 0, ...more }
  const response = await app.fetch('/std/v1/chat/completions', { body, ...(token && { token }) })
  const answer = (await response.json()) as Json
  if (response.status !== 200) throw new Error(JSON.stringify(answer))
  const { prompt_tokens, prompt_tokens_details } = answer.usage
  return { prompt: prompt_tokens, cached: prompt_tokens_details.cached_tokens, text: answer.choices[0].message.content }
}

const unload = async (app: TestApp, model: string) => {
  const { status } = await app.fetch(`/api/models/${model}/unload`, { method: 'POST' })
  expect(status).toBeLessThan(300)
}

/** Stops the server and starts another with its data directory. `before` is called in between. */
async function restarted(app: TestApp, before = () => {}): Promise<Pick<TestApp, 'fetch'>> {
  await app.app.close()
  before()
  const log = openLog('error', line => expect(line).toBe(''))
  const next = await openApp({ ...app, listen: '127.0.0.1:0', drainTimeoutMs: 100, log })
  onTestFinished(() => next.close())
  return {
    fetch: (path, { body } = {}) =>
      fetch(next.url + path, {
        method: 'POST',
        headers: { authorization: `Bearer ${app.secret}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      }),
  }
}

/** Kills the processes whose command line has the socket of this server's engine. */
function killEngines({ dataDir }: TestApp, model: string): void {
  for (const pid of readdirSync('/proc').filter(name => /^\d+$/.test(name))) {
    const command = optionalText(`/proc/${pid}/cmdline`)?.split('\0') ?? []
    const isOurs = command.some(word => word.startsWith(dataDir)) && command.includes('gguf')
    if (isOurs && command[command.indexOf('--id') + 1] === model) process.kill(Number(pid), 'SIGKILL')
  }
}

test('a conversation outlives its engine, a killed one, and the server', async () => {
  const app = await serverWithModels()
  const cold = await ask(app, 'one')
  expect(cold.cached).toBeLessThan(16)
  await unload(app, 'one')
  expect(filesIn(app)).toHaveLength(1)
  // The other model has the same file, but other settings would have other states.
  expect((await ask(app, 'two')).cached).toBeLessThan(16)
  await unload(app, 'two')
  const warm = await ask(app, 'one')
  expect(warm).toEqual({ ...cold, cached: cold.prompt - 1 })

  // An idle engine saves without being told to end.
  const idle = app.logged('Conversations were saved')
  await ask(app, 'one', { messages: [long('pears')] })
  await idle
  const ended = app.logged('An engine has ended unexpectedly')
  killEngines(app, 'one')
  await ended
  const again = await ask(app, 'one', { messages: [long('pears')] })
  expect(again.cached).toBe(again.prompt - 1)

  const next = await restarted(app)
  expect(await ask(next, 'one')).toEqual(warm)
})

test('what is saved belongs to its organization, and ends with it', async () => {
  const app = await serverWithModels()
  const other = await makeOrganization(app)
  const cold = await ask(app, 'one', {}, other.secret)
  await unload(app, 'one')
  expect(filesIn(app)).toHaveLength(1)
  // Neither the other organization gets it, nor is what must not be stored saved in its place.
  const unstored = await ask(app, 'one', { store: false })
  expect(unstored).toEqual({ ...cold, cached: expect.any(Number) })
  expect(unstored.cached).toBeLessThan(16)
  await unload(app, 'one')
  expect(filesIn(app)).toHaveLength(1)
  const warm = await ask(app, 'one', {}, other.secret)
  expect(warm.cached).toBe(cold.prompt - 1)

  const plan = (await (await app.fetch('/api/plan?model=one')).json()) as Json
  expect(plan.saved_conversations).toMatchObject({ conversations: 1 })
  const removed = await app.fetch(`/api/organizations/${other.organizationId}?force=true`, { method: 'DELETE' })
  expect(removed.status).toBeLessThan(300)
  expect(filesIn(app)).toEqual([])
  // Its slot still has the conversation.
  await unload(app, 'one')
  expect(filesIn(app)).toEqual([])
})

test('the budget is never exceeded, and new settings count at once', async () => {
  const app = await serverWithModels()
  await ask(app, 'one')
  await unload(app, 'one')
  expect(filesIn(app)).toHaveLength(1)
  const changed = app.logged('The configuration was read again')
  writeFileSync(app.configPath, `${readFileSync(app.configPath, 'utf8')}\ncaches: { memory: 0 }\n`)
  await changed
  await ask(app, 'one')
  await unload(app, 'one')
  expect(filesIn(app)).toEqual([])
})

test('copies on disk outlive the main memory, and contain no text', async () => {
  const app = await serverWithModels()
  const changed = app.logged('The configuration was read again')
  writeFileSync(app.configPath, `${readFileSync(app.configPath, 'utf8')}\ncaches: { disk: true }\n`)
  await changed
  const cold = await ask(app, 'one')
  await unload(app, 'one')
  const copies = join(app.dataDir, 'conversations', 'copies')
  await vi.waitFor(() => expect(readdirSync(copies, { recursive: true }).join()).toMatch(/\.state\.sealed$/m), 5_000)
  const [state] = filesIn(app)
  const tokens = readFileSync(join(saved(app), state!)).subarray(12, 200)
  const next = await restarted(app, () => {
    const inMemory = saved(app)
    rmSync(inMemory, { recursive: true })
    mkdirSync(inMemory, { mode: 0o700 })
    for (const name of readdirSync(app.dataDir, { recursive: true, withFileTypes: true }))
      if (name.isFile()) expect(readFileSync(join(name.parentPath, name.name)).includes(tokens), name.name).toBe(false)
  })
  expect((await ask(next, 'one')).cached).toBe(cold.prompt - 1)
})
