import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { openApp } from '../../cli/server/app.ts'
import { openLog } from '../../core/log.ts'
import { optionalText } from '../../core/optional-file.ts'
import { fakeEngine, fakeNeeds, startApp, type TestApp } from '../_app.ts'
import { tinyLora } from '../_lora.ts'
import { runInProcess } from '../cli/_in-process.ts'
import { temporary } from '../gpu/launcher/_launch.ts'
import { makeOrganization } from './_organization.ts'

/** A llama-server is found in PATH that plays the real one: see test/fixtures/llama-slots.ts. */
const path = process.env.PATH
let bin: string
beforeAll(() => {
  bin = mkdtempSync(join(tmpdir(), 'infer-bin-'))
  writeFileSync(
    join(bin, 'llama-server'),
    `#!/bin/sh\nexec '${process.execPath}' '${fakeEngine}' --as llama-server "$@"\n`,
  )
  chmodSync(join(bin, 'llama-server'), 0o755)
  process.env.PATH = `${bin}:${path}`
})
afterAll(() => {
  process.env.PATH = path
  rmSync(bin, { recursive: true, force: true })
})

async function serverWith(args: string[] = [], more: object = {}, adapters: object[] = []): Promise<TestApp> {
  const source = join(temporary(), 'chat.gguf')
  writeFileSync(source, 'GGUF')
  const model = {
    engine: 'llama-server',
    source,
    memory: '16MiB',
    devices: 'cpu',
    ...fakeNeeds,
    concurrency: 2,
    args,
    ...more,
  }
  const app = await startApp({ models: [...['one', 'two'].map(id => ({ id, ...model })), ...adapters] })
  onTestFinished(() => app[Symbol.asyncDispose]())
  return app
}

const saved = ({ dataDir }: TestApp) => realpathSync(join(dataDir, 'run', 'conversations'))
const savesSomething = ({ dataDir }: TestApp) => existsSync(join(dataDir, 'run', 'conversations'))
const statesIn = (app: TestApp) =>
  readdirSync(saved(app), { recursive: true, encoding: 'utf8' }).filter(name => name.endsWith('.state'))

type Json = { [key: string]: any } // oxlint-disable-line typescript/no-explicit-any -- answers are looked into freely

const question = (topic: string) => ({ role: 'user', content: `${topic} `.repeat(400) })

async function ask(app: Pick<TestApp, 'fetch'>, model: string, topic: string, more: object = {}, token?: string) {
  const body = { model, messages: [question(topic)], temperature: 0, ...more }
  const response = await app.fetch('/std/v1/chat/completions', { body, ...(token && { token }) })
  const answer = (await response.json()) as Json
  if (response.status !== 200) throw new Error(JSON.stringify(answer))
  const { prompt_tokens, prompt_tokens_details } = answer.usage
  return { prompt: prompt_tokens, cached: prompt_tokens_details.cached_tokens as number }
}

const unload = async (app: TestApp, model: string) => {
  const { status } = await app.fetch(`/api/models/${model}/unload`, { method: 'POST' })
  expect(status).toBeLessThan(300)
}

/** Kills the engines of a model. */
function killEngines({ dataDir }: TestApp, model: string): void {
  for (const pid of readdirSync('/proc').filter(name => /^\d+$/.test(name))) {
    const command = optionalText(`/proc/${pid}/cmdline`)?.split('\0') ?? []
    const isOurs = command.some(word => word.startsWith(dataDir)) && command.includes(fakeEngine)
    if (isOurs && command[command.indexOf('--alias') + 1] === model) process.kill(Number(pid), 'SIGKILL')
  }
}

const turn = (topic: string, words: string) => ({
  messages: [
    question(topic),
    { role: 'assistant', content: 'Hello from the fake engine.' },
    { role: 'user', content: words },
  ],
})

test('a conversation outlives its llama-server, a killed one, and the server', async () => {
  const app = await serverWith()
  expect(await ask(app, 'one', 'apples')).toMatchObject({ cached: 0 })
  await unload(app, 'one')
  expect(statesIn(app)).toHaveLength(1)
  expect(statSync(join(saved(app), statesIn(app)[0]!)).mode & 0o777).toBe(0o600)
  expect((await ask(app, 'two', 'apples')).cached).toBe(0)
  const warm = await ask(app, 'one', 'apples', turn('apples', 'and now?'))
  expect(warm.prompt - warm.cached).toBeLessThan(10)

  await unload(app, 'two')
  // An idle engine saves, in the place of the shorter one.
  const idle = app.logged('Conversations were saved')
  await idle
  const ended = app.logged('An engine has ended unexpectedly')
  killEngines(app, 'one')
  await ended
  const again = await ask(app, 'one', 'apples', turn('apples', 'and now?'))
  expect(again.cached).toBe(again.prompt - 1)
  await unload(app, 'one')
  // One of each model.
  expect(statesIn(app)).toHaveLength(2)

  // A server that was killed has left what an engine was writing.
  const left = join(saved(app), statesIn(app)[0]!.split('/')[0]!, 'wkr_of-before')
  mkdirSync(left)
  writeFileSync(join(left, 'a.part'), 'a conversation')
  await app.app.close()
  const log = openLog('error', line => expect(line).toBe(''))
  const next = await openApp({ ...app, listen: '127.0.0.1:0', drainTimeoutMs: 100, log })
  onTestFinished(() => next.close())
  expect(existsSync(left)).toBe(false)
  const headers = { authorization: `Bearer ${app.secret}`, 'content-type': 'application/json' }
  const body = JSON.stringify({ model: 'one', ...turn('apples', 'and now?') })
  const response = await fetch(`${next.url}/std/v1/chat/completions`, { method: 'POST', headers, body })
  const { usage } = (await response.json()) as Json
  expect(usage.prompt_tokens_details.cached_tokens).toBe(usage.prompt_tokens - 1)
})

test('a saved slot belongs to its organization, and ends with it', async () => {
  const app = await serverWith()
  const other = await makeOrganization(app)
  await ask(app, 'one', 'apples', {}, other.secret)
  await unload(app, 'one')
  expect(statesIn(app)).toHaveLength(1)
  const env = { INFER_URL: app.url, INFER_TOKEN: app.secret }
  expect((await runInProcess(['ps'], env)).stderr).toMatch(
    /^No model is loaded.*\none: 1 conversation is saved, [\d.]+ KiB of main memory\.\n$/,
  )
  const { models } = (await (await app.fetch('/api/system/status')).json()) as Json
  expect(models.map(({ saved_conversations }: Json) => saved_conversations)).toEqual([
    { conversations: 1, bytes: expect.any(Number) },
    { conversations: 0, bytes: 0 },
  ])
  const [name] = statesIn(app)
  // Neither the other organization gets it, nor is what must not be stored saved or restored.
  expect((await ask(app, 'one', 'apples', { store: false })).cached).toBe(0)
  await unload(app, 'one')
  expect(statesIn(app)).toEqual([name])
  expect((await ask(app, 'one', 'apples')).cached).toBe(0)
  await unload(app, 'one')
  expect(statesIn(app)).toHaveLength(2)
  expect((await ask(app, 'one', 'apples', { store: false }, other.secret)).cached).toBe(0)
  await unload(app, 'one')
  const warm = await ask(app, 'one', 'apples', {}, other.secret)
  expect(warm.cached).toBe(warm.prompt - 1)
  const removed = await app.fetch(`/api/organizations/${other.organizationId}?force=true`, { method: 'DELETE' })
  expect(removed.status).toBeLessThan(300)
  expect(statesIn(app)).toHaveLength(1)
  // Its slot still has the conversation.
  await unload(app, 'one')
  expect(statesIn(app)).toHaveLength(1)
  expect(statesIn(app)).not.toContain(name)
})

test('what an adapter has computed is saved, and restored for that adapter only', async () => {
  const file = (seed: number) => {
    const path = join(temporary(), `lora-${seed}.gguf`)
    writeFileSync(path, tinyLora(seed))
    return path
  }
  const adapters = ['poet', 'tax'].map((id, at) => ({ id, adapter: { of: 'one', source: file(at + 1) } }))
  const app = await serverWith([], {}, adapters)
  for (const [at, name] of ['poet', 'tax', 'one'].entries()) {
    expect(await ask(app, name, 'apples')).toMatchObject({ cached: 0 })
    await unload(app, 'one')
    expect(statesIn(app)).toHaveLength(at + 1)
  }
  for (const name of ['tax', 'one', 'poet']) {
    const warm = await ask(app, name, 'apples')
    expect(warm.cached).toBe(warm.prompt - 1)
  }
})

test('where tokens are guessed from the text, conversations are saved too', async () => {
  const app = await serverWith([], { speculative: {} })
  await ask(app, 'one', 'apples')
  await unload(app, 'one')
  const warm = await ask(app, 'one', 'apples')
  expect(warm.cached).toBe(warm.prompt - 1)
})

describe('nothing is saved, and requests are answered', () => {
  test.each<[string, string[]]>([
    ['by a build that computes requests in other slots than they name', ['--ignores-slots']],
    ['if the model has a folder of its own', ['--slot-save-path', '/tmp']],
    ['if the engine guesses tokens with another model', ['-md', '/models/draft.gguf']],
    ['if the engine has fewer slots than requests', ['-np', '1']],
  ])('%s', async (_what, args) => {
    const app = await serverWith(args)
    await ask(app, 'one', 'apples')
    await unload(app, 'one')
    expect(savesSomething(app) ? statesIn(app) : []).toEqual([])
  })

  test('any more by a build that restores without an effect', async () => {
    const app = await serverWith(['--restores-nothing'])
    await ask(app, 'one', 'apples')
    await unload(app, 'one')
    expect(statesIn(app)).toHaveLength(1)
    const useless = app.logged(/restores conversations without an effect/)
    expect((await ask(app, 'one', 'apples')).cached).toBe(0)
    await useless
    await unload(app, 'one')
    expect(statesIn(app)).toEqual([])
    await ask(app, 'one', 'pears')
    await unload(app, 'one')
    expect(statesIn(app)).toEqual([])
  })
})

test('a file that an engine cannot read is deleted, and the request is answered', async () => {
  const app = await serverWith()
  await ask(app, 'one', 'apples')
  await unload(app, 'one')
  const [name] = statesIn(app)
  const file = join(saved(app), name!)
  writeFileSync(file, Buffer.alloc(readFileSync(file).length))
  expect((await ask(app, 'one', 'apples')).cached).toBe(0)
  expect(statesIn(app)).toEqual([])
})

test('what an engine has left in its folder is deleted with its end', async () => {
  const app = await serverWith()
  await ask(app, 'one', 'apples')
  const [model] = readdirSync(saved(app))
  const [exchange] = readdirSync(join(saved(app), model!)).filter(name => name.startsWith('wkr_'))
  mkdirSync(join(saved(app), model!, exchange!, 'folder'))
  await unload(app, 'one')
  expect(readdirSync(join(saved(app), model!)).filter(name => name.startsWith('wkr_'))).toEqual([])
  rmSync(saved(app), { recursive: true, force: true })
})
