import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fakeNeeds, startApp, type TestApp } from '../../_app.ts'
import { cardLine, installNvidiaSmi } from '../../fixtures/nvidia-smi.ts'

/**
 * Engines that cannot run here, started by the real launcher with the commands of their presets. Their programs are
 * imitated by a process that refuses options, keys and variables like the real ones (`test/fixtures/preset-engine.ts`).
 */
const speech = { tasks: ['std/audio-speech'], voices: ['af_heart', 'nobody'] }
const engines = {
  tei: [{ tasks: ['std/rerank'] }, '/rerank', { query: 'a', documents: ['b', 'c'] }],
  sglang: [{ tasks: ['std/chat-completion'] }, '/chat/completions', { messages: [{ role: 'user', content: 'Hello' }] }],
  speaches: [
    { ...speech, source: 'org/voice' },
    '/audio/speech',
    { input: 'Hello', voice: 'af_heart', response_format: 'wav' },
  ],
  'kokoro-fastapi': [speech, '/audio/speech', { input: 'Hello', voice: 'af_heart', response_format: 'wav' }],
} as const
type Engine = keyof typeof engines
const names = Object.keys(engines) as Engine[]
const faults = ['memory', 'overloaded', 'garbage', 'slow']

let app: TestApp
const bin = mkdtempSync(join(tmpdir(), 'infer-bin-'))
const path = process.env.PATH

beforeAll(async () => {
  const fixture = join(import.meta.dirname, '../../fixtures/preset-engine.ts')
  for (const program of ['text-embeddings-router', 'sglang', 'uvicorn']) {
    writeFileSync(join(bin, program), `#!/bin/sh\nexec '${process.execPath}' '${fixture}' ${program} "$@"\n`)
    chmodSync(join(bin, program), 0o755)
  }
  installNvidiaSmi(bin, { cards: `echo '${cardLine()}'` })
  process.env.PATH = `${bin}:${path}`
  const common = { source: '/models/m', memory: '16MiB', stop_grace: '500ms', ...fakeNeeds }
  app = await startApp({
    models: names.flatMap(engine =>
      ['', 'option', ...faults].map(fault => ({
        ...common,
        id: `${engine}${fault}`,
        engine,
        ...engines[engine][0],
        ...(fault === 'option' ? { args: ['--unknown', '1'] } : fault ? { env: { FAKE_FAULT: fault } } : {}),
      })),
    ),
  })
})
afterAll(async () => {
  await app[Symbol.asyncDispose]()
  process.env.PATH = path
  rmSync(bin, { recursive: true, force: true })
})

async function ask(engine: Engine, fault = '', more: object = {}): Promise<{ status: number; text: string }> {
  const [, route, body] = engines[engine]
  const response = await app.fetch(`/std/v1${route}`, { body: { model: `${engine}${fault}`, ...body, ...more } })
  return { status: response.status, text: await response.text() }
}

describe.each(names)('%s', engine => {
  const answers: Record<Engine, RegExp> = {
    tei: /"relevance_score":0\.9/,
    sglang: /"content":"Hello"/,
    speaches: /^RIFF/,
    'kokoro-fastapi': /^RIFF/,
  }
  test('starts by its preset and serves a request', async () => {
    const { status, text } = await ask(engine)
    expect([status, text.slice(0, 500)]).toEqual([200, expect.stringMatching(answers[engine])])
  })
  test('a slow answer arrives whole', async () => {
    expect(await ask(engine, 'slow')).toMatchObject({ status: 200, text: expect.stringMatching(answers[engine]) })
  })
  test('the reason why it could not load reaches the caller', async () => {
    const { status, text } = await ask(engine, 'memory')
    expect([status, text]).toEqual([
      expect.toSatisfy((code: number) => code >= 500),
      expect.stringMatching(/cannot be started: Engine exited \(1\): out of memory/),
    ])
  })
  test('an option that the program does not know ends it', async () => {
    expect((await ask(engine, 'option')).text).toMatch(/cannot be started: Engine exited \(2\)/)
  })
  test('a full engine is a retryable error', async () => {
    const { status, text } = await ask(engine, 'overloaded')
    expect([status, text]).toEqual([
      expect.toSatisfy((code: number) => code === 429 || code === 503),
      expect.any(String),
    ])
  })
})

test.each(['tei', 'sglang'] as const)('half an answer of %s is an error of the engine', async engine => {
  expect((await ask(engine, 'garbage')).status).toBe(502)
})

test.each([600, 200_000])('TEI cuts a text of %i characters only when it is asked to', async length => {
  const documents = ['x'.repeat(length)]
  const { status, text } = await ask('tei', '', { documents })
  expect([status, JSON.parse(text).error.code]).toEqual([400, 'context_length_exceeded'])
  expect((await ask('tei', '', { documents, truncation: true })).status).toBe(200)
})

test('an unknown voice of Kokoro-FastAPI is named by its sentence', async () => {
  const { status, text } = await ask('kokoro-fastapi', '', { voice: 'nobody' })
  expect([status, JSON.parse(text).error.message]).toEqual([
    400,
    expect.stringMatching(/^[^{]*Voice 'nobody' not found/),
  ])
})
