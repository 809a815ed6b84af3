import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { fakeEngine, fakeNeeds, startApp, type TestApp } from '../_app.ts'
import { tinyLora } from '../_lora.ts'
import { runInProcess } from '../cli/_in-process.ts'
import { cardLine, installNvidiaSmi } from '../fixtures/nvidia-smi.ts'
import { makeOrganization } from './_organization.ts'

/** Adapters as models of their base, on engines that refuse what the real ones refuse. */
let app: TestApp
const bin = mkdtempSync(join(tmpdir(), 'infer-lora-'))
const path = process.env.PATH
const program = (name: string, line: string) => {
  writeFileSync(join(bin, name), `#!/bin/sh\n${line}\n`)
  chmodSync(join(bin, name), 0o755)
}
const ggufOf = (name: string, of: object = {}): string => {
  const file = join(bin, `${name}.gguf`)
  writeFileSync(file, tinyLora(1, of))
  return file
}
const folderOf = (name: string, config: object): string => {
  const folder = join(bin, name)
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'adapter_config.json'), JSON.stringify({ peft_type: 'LORA', r: 8, ...config }))
  return folder
}

const price = { input_per_million_tokens: 5_000 }
const common = { memory: '16MiB', stop_grace: '500ms', tasks: ['std/chat-completion'] }
const models = () => [
  { id: 'llama', engine: 'llama-server', source: '/models/m.gguf', devices: 'cpu', ...common, ...fakeNeeds },
  {
    id: 'support',
    adapter: { of: 'llama', source: ggufOf('support') },
    description: 'Answers customers',
    price,
    fallbacks: [{ model: 'vllm', when: ['failed'], wait: '90s' }],
  },
  {
    id: 'poet',
    adapter: { of: 'llama', source: ggufOf('poet'), scale: 0.5 },
    aliases: ['bard'],
    profiles: { terse: { max_tokens: 2 } },
  },
  { id: 'no-adapter', adapter: { of: 'llama', source: join(bin, 'nothing.gguf') } },
  { id: 'off', adapter: { of: 'llama', source: ggufOf('off') }, enabled: false },
  { id: 'vllm', engine: 'vllm', source: 'org/m', ...common, sandbox_read: [...fakeNeeds.sandbox_read, bin] },
  { id: 'legal', adapter: { of: 'vllm', source: folderOf('legal', {}) } },
  { id: 'medical', adapter: { of: 'vllm', source: folderOf('medical', { r: 300 }) } },
  { id: 'gone', adapter: { of: 'vllm', source: folderOf('gone', {}) } },
  { id: 'sgl:1', engine: 'sglang', source: '/models/m', ...common, ...fakeNeeds },
  { id: 'tax', adapter: { of: 'sgl:1', source: folderOf('tax', {}) } },
]

beforeAll(async () => {
  const engine = `exec '${process.execPath}' '${fakeEngine}'`
  program('llama-server', `${engine} --as llama-server "$@"`)
  program('vllm', `${engine} --as vllm "$@"`)
  const preset = join(import.meta.dirname, '../fixtures/preset-engine.ts')
  program('sglang', `exec '${process.execPath}' '${preset}' sglang "$@"`)
  installNvidiaSmi(bin, { cards: `echo '${cardLine()}'` })
  process.env.PATH = `${bin}:${path}`
  app = await startApp({ models: models() })
})
afterAll(async () => {
  await app[Symbol.asyncDispose]()
  process.env.PATH = path
  rmSync(bin, { recursive: true, force: true })
})

const json = async (answer: Response) => (await answer.json()) as Record<string, unknown>

async function chat(model: string, more: object = {}, token?: string) {
  const answer = await app.fetch('/std/v1/chat/completions', {
    body: { model, messages: [{ role: 'user', content: 'Hello' }], ...more },
    ...(token ? { token } : {}),
  })
  const body = await json(answer)
  const id = answer.headers.get('x-job-id')
  const record =
    id === null || answer.status !== 200 ? undefined : await json(await app.fetch(`/api/jobs/${id}?wait=10`))
  const [choice] = (body.choices ?? []) as { message: { content: string } }[]
  return {
    status: answer.status,
    body,
    record,
    text: choice?.message.content.replace(' from the fake engine.', ''),
    header: answer.headers.get('x-infer-model'),
  }
}

const engineOf = async (model: string) => (await chat(model)).record!.worker_id

describe('llama-server', () => {
  test('answers for its base without any adapter, and for each adapter with that one', async () => {
    expect((await chat('llama')).text).toBe('Hello')
    expect((await chat('support')).text).toBe('support: Hello')
    expect((await chat('poet')).text).toBe('poet0.5: Hello')
    expect((await chat('bard')).text).toBe('poet0.5: Hello')
    expect((await chat('terse')).body).toMatchObject({ model: 'terse', usage: { completion_tokens: 2 } })
    expect(await engineOf('support')).toBe(await engineOf('llama'))
  })
  test('the answer, the record and the price are those of the adapter', async () => {
    const { body, record, header } = await chat('support')
    expect(body.model).toBe('support')
    expect(header).toBe('llama')
    expect(record).toMatchObject({ model_id: 'llama', requested_model: 'support', cost: 5_000e-6 })
  })
  test('an adapter whose file is missing refuses its own requests only, and one that is switched off is not offered', async () => {
    expect(await chat('no-adapter')).toMatchObject({ status: 502, body: { error: { code: 'model_load_failed' } } })
    expect(await chat('off')).toMatchObject({ status: 404 })
    const warnings = app.lines.filter(line => line.includes('An adapter cannot be used'))
    expect(warnings.map(line => JSON.parse(line).adapter)).toEqual(['no-adapter'])
    expect((await chat('llama')).status).toBe(200)
  })
})

describe('vLLM', () => {
  test('gets an adapter with its first request, once', async () => {
    expect((await chat('vllm')).text).toBe('Hello')
    const answers = await Promise.all(['legal', 'legal', 'gone'].map(name => chat(name)))
    expect(answers.map(({ text }) => text)).toEqual([
      'legal of legal: Hello',
      'legal of legal: Hello',
      'gone of gone: Hello',
    ])
    expect((await chat('legal')).text).toBe('legal of legal: Hello')
  })
  test('an adapter that it refuses fails with its words, without locations', async () => {
    rmSync(join(bin, 'medical', 'adapter_config.json'))
    const { status, body } = await chat('medical')
    expect([status, (body.error as { message: string }).message]).toEqual([
      502,
      expect.stringMatching(
        /^The engine cannot load the adapter 'medical': Loading lora medical failed: No adapter found/,
      ),
    ])
    expect(JSON.stringify(body)).not.toContain(bin)
    folderOf('medical', { r: 300 })
    expect((await chat('medical')).status).toBe(200)
  })
})

test('SGLang gets an adapter with its first request, and a name without the colon of the model', async () => {
  expect((await chat('sgl:1')).text).toBe('Hello')
  expect((await chat('tax')).text).toBe('tax of tax: Hello')
})

describe('an adapter', () => {
  test('is listed as a model of its base, with its own description and price', async () => {
    const { data } = (await json(await app.fetch('/std/v1/models'))) as { data: Record<string, unknown>[] }
    expect(data.find(({ id }) => id === 'support')).toMatchObject({
      model_id: 'llama',
      description: 'Answers customers',
      status: 'warm',
      price: { input_per_million_tokens: 5_000 },
    })
    expect(data.map(({ id }) => id)).not.toContain('off')
    const status = (await json(await app.fetch('/api/model-status'))) as { models: Record<string, unknown>[] }
    const of = (id: string) => status.models.find(({ model_id }) => model_id === id)
    expect(of('poet')).toMatchObject({ adapter_of: 'llama', profile_of: null, aliases: ['bard'] })
    expect(of('terse')).toMatchObject({ adapter_of: null, profile_of: 'poet' })
    expect(of('llama')).toMatchObject({ adapter_of: null })
  })
  test('is listed with the engine of its base', async () => {
    const { engines } = (await json(await app.fetch('/api/system/status'))) as {
      engines: { model_id: string; adapters: string[] }[]
    }
    const of = (id: string) => engines.find(({ model_id }) => model_id === id)!.adapters
    expect([of('llama'), of('sgl:1')]).toEqual([['support', 'poet', 'no-adapter'], ['tax']])
    const { stderr } = await runInProcess(['ps'], { INFER_URL: app.url, INFER_TOKEN: app.secret })
    expect(stderr).toContain('llama serves its adapters too: support, poet, no-adapter.')
  })
  test('is listed by the plan of its base, with the reason why it cannot be used', async () => {
    const adaptersFor = async (token?: string) =>
      (await json(await app.fetch('/api/plan?model=llama', token ? { token } : {}))).adapters
    const bytes = 2 * 4 * 2 * 64 * 4 * 4
    expect(await adaptersFor()).toEqual([
      { model_id: 'support', bytes, fault: null },
      { model_id: 'poet', bytes, fault: null },
      { model_id: 'no-adapter', bytes: null, fault: expect.stringContaining('There is no file') },
    ])
    const { secret } = await makeOrganization(app, { models: ['llama', 'poet'] })
    expect(await adaptersFor(secret)).toEqual([{ model_id: 'poet', bytes, fault: null }])
  })
  test('the plan for one of its names says whose name it is, and what the token may use besides', async () => {
    const planFor = async (name: string, token?: string) =>
      json(await app.fetch(`/api/plan?model=${name}`, token ? { token } : {}))
    expect(await planFor('llama')).toMatchObject({
      requested_name: null,
      names: [
        { name: 'bard', kind: 'alias', of: 'poet' },
        { name: 'terse', kind: 'profile', of: 'poet' },
      ],
      fallbacks: [],
    })
    expect(await planFor('support')).toMatchObject({
      model_id: 'llama',
      requested_name: { name: 'support', kind: 'adapter', of: 'llama' },
      fallbacks: [{ model_id: 'vllm', when: ['failed'], wait_seconds: 90 }],
    })
    const { secret } = await makeOrganization(app, { models: ['support', 'bard'] })
    expect(await planFor('support', secret)).toMatchObject({ names: [{ name: 'bard' }], fallbacks: [] })
    expect(await planFor('terse', secret)).toMatchObject({ error: { code: 'model_not_found' } })
    const env = { INFER_URL: app.url, INFER_TOKEN: app.secret }
    const text = async (name: string) => (await runInProcess(['model', 'plan', name], env)).stdout.toString()
    const terse = await text('terse')
    expect(terse).toMatch(/^llama  .*\n'terse' is a profile of 'poet', a LoRA adapter of 'llama'/)
    expect(terse).toContain('\naliases bard (of poet)\nprofiles terse (of poet)\nadapter support')
    expect(await text('support')).toContain(
      "\n'vllm' answers when 'support' fails or when a request would wait longer than 90s.\n",
    )
  })
  test('must be allowed by its own name, and its alias with it', async () => {
    const token = async (names: string[]) => (await makeOrganization(app, { models: names })).secret
    const [base, poet] = [await token(['llama']), await token(['poet'])]
    expect((await chat('llama', {}, base)).status).toBe(200)
    expect((await chat('poet', {}, base)).status).toBe(403)
    expect((await chat('poet', {}, poet)).status).toBe(200)
    expect((await chat('bard', {}, poet)).status).toBe(200)
    expect((await chat('llama', {}, poet)).status).toBe(403)
  })
})

test('a changed file loads an adapter into vLLM without a restart, and into llama-server with a new engine', async () => {
  const before = { vllm: await engineOf('vllm'), llama: await engineOf('llama') }
  const next = [
    ...models().filter(({ id }) => id !== 'gone' && id !== 'poet'),
    { id: 'fresh', adapter: { of: 'vllm', source: folderOf('fresh', {}) } },
    { id: 'critic', adapter: { of: 'llama', source: ggufOf('critic') } },
  ]
  const read = app.logged('The configuration was read again')
  writeFileSync(app.configPath, stringify({ models: next }))
  await read
  expect((await chat('fresh')).text).toBe('fresh of fresh: Hello')
  expect((await chat('gone')).status).toBe(404)
  expect((await chat('critic')).text).toBe('critic: Hello')
  expect((await chat('support')).text).toBe('support: Hello')
  expect((await chat('poet')).status).toBe(404)
  expect(await engineOf('vllm')).toBe(before.vllm)
  expect(await engineOf('llama')).not.toBe(before.llama)
})

describe('added over the API', () => {
  const add = async (body: object) => {
    const answer = await app.fetch('/api/models', { body })
    return {
      status: answer.status,
      body: (await json(answer)) as Record<string, unknown> & { error?: { message: string } },
    }
  }
  const env = () => ({ INFER_URL: app.url, INFER_TOKEN: app.secret })

  test('an adapter of a rank above what vLLM has reserved says so, and works after the next load', async () => {
    expect((await chat('legal')).status).toBe(200)
    const model = folderOf('deep', { r: 400 })
    const words = "The adapter has the rank 400, and the running engine of 'vllm' has memory for 320."
    const remedy = 'The next load reserves more: infer model unload vllm'
    const proposed = await add({ model, adapter_of: 'vllm', dry_run: true })
    expect(proposed).toMatchObject({
      status: 200,
      body: { model: { id: 'deep', adapter: { of: 'vllm', source: model } }, fits: true, obstacle: null },
    })
    expect(proposed.body.advice).toEqual([`${words} ${remedy}`])
    const read = app.logged('The configuration was read again')
    const begun = await add({ model, adapter_of: 'vllm' })
    expect(begun).toMatchObject({ status: 202, body: { status: 'running' } })
    await expect
      .poll(async () => (await json(await app.fetch('/api/model-downloads'))).downloads)
      .toMatchObject([{ id: begun.body.id, status: 'completed', model_id: 'deep' }])
    await read
    const refused = await chat('deep')
    expect([refused.status, refused.body.error]).toEqual([
      502,
      expect.objectContaining({ message: `The engine cannot load the adapter 'deep': ${words} ${remedy}` }),
    ])
    const { adapters } = await json(await app.fetch('/api/plan?model=vllm'))
    expect(adapters).toContainEqual({ model_id: 'deep', bytes: null, fault: `${words} ${remedy}` })
    await app.fetch('/api/models/vllm/unload?wait=30', { method: 'POST' })
    expect((await chat('deep')).text).toBe('deep of deep: Hello')
  })

  test('by infer model add with INFER_URL', async () => {
    const file = ggufOf('sonnet')
    const read = app.logged('The configuration was read again')
    const added = await runInProcess(['model', 'add', file, '--adapter-of', 'llama', '--yes'], env())
    expect([added.exitCode, added.stdout.toString()]).toEqual([
      0,
      expect.stringMatching(/^sonnet {2}adapter of llama {2}memory .*\n[^]*offers 'sonnet'/),
    ])
    await read
    expect((await chat('sonnet')).text).toBe('sonnet: Hello')
    const relative = await runInProcess(['model', 'add', './sonnet.gguf', '--adapter-of', 'llama', '--yes'], env())
    expect([relative.exitCode, relative.failure?.message]).toEqual([64, expect.stringContaining('no absolute path')])
  })

  test.each([
    [
      'a file elsewhere on the machine',
      { model: '/etc/hostname' },
      400,
      /is in no folder from which adapters are added/,
    ],
    ['a link to a file elsewhere', { model: 'LINK' }, 400, /is in no folder from which/],
    ['a path with a way out', { model: 'BIN/../../etc/hostname' }, 400, /is in no folder from which/],
    ['a relative path', { model: 'support.gguf' }, 400, /absolute path on the machine of the server/],
    ['an option', { model: '--help' }, 400, /absolute path/],
    ['a file that is not there', { model: 'BIN/none.gguf' }, 400, /There is no file or folder/],
    ['a file that is no LoRA', { model: 'BIN/vllm' }, 400, /./],
    ['a base that is not there', { model: 'BIN/support.gguf', adapter_of: 'nobody' }, 404, /has no model 'nobody'/],
    ['a base that is an adapter', { model: 'BIN/support.gguf', adapter_of: 'support' }, 400, /is a name of 'llama'/],
    ['a setting of its base', { model: 'BIN/support.gguf', context: 512 }, 400, /is a setting of the base model/],
  ])('%s is refused', async (_, { model, ...more }, status, words) => {
    const link = join(bin, 'link.gguf')
    rmSync(link, { force: true })
    symlinkSync('/etc/hostname', link)
    const path = model.replace('BIN', bin).replace('LINK', link)
    const answer = await add({ model: path, adapter_of: 'llama', dry_run: true, ...more })
    expect([answer.status, answer.body.error?.message]).toEqual([status, expect.stringMatching(words)])
  })
})
