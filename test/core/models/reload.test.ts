import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { stringify } from 'yaml'
import { openLog } from '../../../core/log.ts'
import { parseConfig } from '../../../core/models/config.ts'
import { openReload } from '../../../core/models/reload.ts'
import { fakeModel, startApp, type TestApp } from '../../_app.ts'

const limits = { min_free_disk: 0, ballast: 0 }
/** As an editor writes it: a new file replaces the old one. */
function replace(app: TestApp, config: object | string): void {
  const text = typeof config === 'string' ? config : stringify({ limits, ...config })
  writeFileSync(`${app.configPath}.swp`, text)
  renameSync(`${app.configPath}.swp`, app.configPath)
}
const readAgain = 'The configuration was read again'

async function edited(app: TestApp, config: object): Promise<Record<string, unknown>> {
  const line = app.logged(readAgain)
  replace(app, config)
  return await line
}

const chat = (app: TestApp, model: string, text = 'Hello', stream = false) =>
  app.fetch('/std/v1/chat/completions', { body: { model, stream, messages: [{ role: 'user', content: text }] } })
const codeOf = async (response: Response): Promise<[number, string | undefined]> => [
  response.status,
  ((await response.json()) as { error?: { code: string } }).error?.code,
]
interface Status {
  model_id: string
  status: string
  queue_depth: number
  workers: { ready: number; loading: number }
}
const statusOf = async (app: TestApp, model: string): Promise<Status | undefined> =>
  ((await (await app.fetch('/api/model-status')).json()) as { models: Status[] }).models.find(
    ({ model_id }) => model_id === model,
  )
const metric = async (app: TestApp, name: string): Promise<number> => {
  const text = await (await app.fetch('/metrics')).text()
  return Number(
    text
      .split('\n')
      .find(line => line.startsWith(`${name} `))!
      .slice(name.length + 1),
  )
}

interface Engine {
  id: string
  model_id: string
  pid: number
  state: string
  busy: number
}
const enginesOf = async (app: TestApp, model?: string): Promise<Engine[]> =>
  ((await (await app.fetch('/api/system/status')).json()) as { engines: Engine[] }).engines.filter(
    ({ model_id }) => model === undefined || model_id === model,
  )
/** Resolves once the condition holds; polls as fast as the server answers. */
async function until<T>(ask: () => Promise<T>, so: (value: T) => boolean): Promise<T> {
  for (;;) {
    const value = await ask()
    if (so(value)) return value
  }
}

test('added models answer, removed ones do not exist, unchanged ones keep their engines', async () => {
  await using app = await startApp({ models: [fakeModel('stays'), fakeModel('goes')] })
  expect((await chat(app, 'stays')).status).toBe(200)
  expect((await chat(app, 'goes')).status).toBe(200)
  const [before] = await enginesOf(app, 'stays')

  const line = await edited(app, { models: [fakeModel('comes', [], { description: 'new' }), fakeModel('stays')] })
  expect(line).toMatchObject({ added: 'comes', removed: 'goes' })
  expect(line).not.toHaveProperty('replaced')
  expect((await chat(app, 'comes')).status).toBe(200)
  expect(await codeOf(await chat(app, 'goes'))).toEqual([404, 'model_not_found'])
  expect((await app.fetch('/std/v1/models/goes')).status).toBe(404)
  expect((await enginesOf(app, 'stays'))[0]).toMatchObject({ id: before!.id, pid: before!.pid })
  // Its engine has ended, and is listed nowhere.
  await until(
    () => enginesOf(app, 'goes'),
    engines => engines.length === 0,
  )
  expect(await statusOf(app, 'goes')).toBeUndefined()
  const metrics = await (await app.fetch('/metrics')).text()
  expect(metrics).toContain('infer_queue_depth{model="stays"}')
  expect(metrics).not.toContain('infer_queue_depth{model="goes"}')
})

test('a changed model: running requests end on the old engine, new ones get a new one', async () => {
  await using app = await startApp({ models: [fakeModel('m', ['--id', 'old'])] })
  const running = await chat(app, 'm', 'mode:stream,tokens=40,rate=20', true)
  const reader = running.body!.getReader()
  let text = new TextDecoder().decode((await reader.read()).value)
  const [old] = await enginesOf(app, 'm')

  const replaced = await edited(app, { models: [fakeModel('m', ['--id', 'new'])] })
  expect(replaced).toMatchObject({ replaced: 'm' })
  expect((await chat(app, 'm')).status).toBe(200)
  const two = await enginesOf(app, 'm')
  expect(two.map(({ id, busy }) => [id === old!.id, busy])).toEqual([
    [true, 1],
    [false, 0],
  ])

  for (let part = await reader.read(); !part.done; part = await reader.read())
    text += new TextDecoder().decode(part.value)
  expect(text).toMatch(/data: \[DONE\]\n\n$/)
  expect(text).not.toContain('error')
  await until(
    () => enginesOf(app, 'm'),
    engines => engines.length === 1 && engines[0]!.id !== old!.id,
  )
})

test('a loaded model that is changed is loaded again before the next request', async () => {
  await using app = await startApp({ models: [fakeModel('m')] })
  await chat(app, 'm')
  const [old] = await enginesOf(app, 'm')
  await edited(app, { models: [fakeModel('m', ['--chatty'])] })
  const [fresh] = await until(
    () => enginesOf(app, 'm'),
    engines => engines.some(({ id, state }) => id !== old!.id && state === 'ready'),
  )
  expect(fresh).toBeDefined()
})

test('settings that do not concern the engine change without a new one', async () => {
  await using app = await startApp({ models: [fakeModel('m')] })
  await chat(app, 'm')
  const [old] = await enginesOf(app, 'm')
  const line = await edited(app, {
    models: [fakeModel('m', [], { description: 'Better', max_queue: 7, price: { input_per_million_tokens: 1 } })],
  })
  expect(line).toMatchObject({ updated: 'm' })
  expect(await (await app.fetch('/std/v1/models/m')).json()).toMatchObject({ description: 'Better' })
  await chat(app, 'm')
  expect(await enginesOf(app, 'm')).toMatchObject([{ id: old!.id }])
})

test('a disabled model does not exist for callers; enabled again it does', async () => {
  await using app = await startApp({ models: [fakeModel('m'), fakeModel('other')] })
  await chat(app, 'm')
  await edited(app, { models: [fakeModel('m', [], { enabled: false }), fakeModel('other')] })
  expect(await codeOf(await chat(app, 'm'))).toEqual([404, 'model_not_found'])
  expect(await statusOf(app, 'm')).toMatchObject({ status: 'disabled' })
  await edited(app, { models: [fakeModel('m'), fakeModel('other')] })
  expect((await chat(app, 'm')).status).toBe(200)
})

test('requests that wait for a removed model are refused; those that wait for a changed one get its new engine', async () => {
  await using app = await startApp({ models: [fakeModel('gone', ['--hang']), fakeModel('mended', ['--hang'])] })
  const lost = chat(app, 'gone')
  const served = chat(app, 'mended')
  for (const id of ['gone', 'mended'])
    await until(
      () => statusOf(app, id),
      status => status?.queue_depth === 1,
    )
  await edited(app, { models: [fakeModel('mended')] })
  expect(await codeOf(await lost)).toEqual([404, 'model_not_found'])
  expect((await served).status).toBe(200)
})

test('a removed model completes running requests, and a job that waits for it fails with its name', async () => {
  await using app = await startApp({ models: [fakeModel('goes', [], { concurrency: 1 }), fakeModel('stays')] })
  const running = await chat(app, 'goes', 'mode:stream,tokens=30,rate=20', true)
  const made = await app.fetch('/api/jobs', {
    body: { task: 'std/embeddings', model_id: 'goes', inputs: { input: 'a' } },
  })
  const { id } = (await made.json()) as { id: string }
  await until(
    () => statusOf(app, 'goes'),
    status => status?.queue_depth === 1,
  )
  await edited(app, { models: [fakeModel('stays')] })
  const job = (await (await app.fetch(`/api/jobs/${id}?wait=30`)).json()) as object
  expect(job).toMatchObject({ status: 'failed', error: { code: 'model_not_found', retryable: false } })
  // Until its stream has ended, the engine exists and is listed.
  expect(await enginesOf(app, 'goes')).toMatchObject([{ busy: 1 }])
  expect(await running.text()).toMatch(/data: \[DONE\]\n\n$/)
  await until(
    () => enginesOf(app, 'goes'),
    engines => engines.length === 0,
  )
})

test('a client that disconnects while its model changes leaves no slot taken', async () => {
  await using app = await startApp({ models: [fakeModel('m', ['--hang'])] })
  const client = new AbortController()
  const left = app
    .fetch('/std/v1/chat/completions', {
      body: { model: 'm', messages: [{ role: 'user', content: 'Hello' }] },
      signal: client.signal,
    })
    .catch((thrown: Error) => thrown.name)
  await until(
    () => statusOf(app, 'm'),
    status => status?.queue_depth === 1,
  )
  await edited(app, { models: [fakeModel('m', ['--hang'], { concurrency: 1 })] })
  client.abort()
  expect(await left).toBe('AbortError')
  await until(
    () => statusOf(app, 'm'),
    status => status?.queue_depth === 0,
  )
  await edited(app, { models: [fakeModel('m', [], { concurrency: 1 })] })
  expect((await chat(app, 'm')).status).toBe(200)
  expect(await enginesOf(app, 'm')).toMatchObject([{ busy: 0 }])
})

test('a model that an edit keeps loaded is loaded, and one that it no longer keeps can be unloaded', async () => {
  await using app = await startApp({ models: [fakeModel('other')] })
  await edited(app, { models: [fakeModel('m', [], { replicas: { min: 1, max: 1 } })] })
  await until(
    () => statusOf(app, 'm'),
    status => status?.status === 'warm',
  )
  await edited(app, { models: [fakeModel('m', [], { idle_ttl: 1 })] })
  await until(
    () => statusOf(app, 'm'),
    status => status?.status === 'cold',
  )
})

test.each<[string, string, RegExp]>([
  ['no YAML', 'models: [\n', /infer\.yaml:2:1: .*valid YAML/],
  [
    'a wrong value',
    'models:\n  - id: m\n    concurrency: 0\n',
    /infer\.yaml:3:5: 'models\[0\]\.concurrency' must be at least 1/,
  ],
  ['an unknown setting', 'modles: []\n', /infer\.yaml:1:1: .*Did you mean 'models'/],
  ['an unknown engine', 'models:\n  - id: m\n    engine: vlm\n', /infer\.yaml:3:5: .*no engine 'vlm'.*vllm/],
  ['an id used twice', 'models:\n  - {id: m, source: /m}\n  - {id: m, source: /m}\n', /infer\.yaml:3:6: .*used twice/],
  ['an empty file', ' \n', /empty.*models: \[\]/],
])('a broken edit keeps the old configuration, and reports the error: %s', async (_, text, says) => {
  await using app = await startApp({ models: [fakeModel('m')] })
  await chat(app, 'm')
  const [old] = await enginesOf(app, 'm')
  expect(await metric(app, 'infer_configuration_in_force')).toBe(1)
  const line = app.logged('keeps the previous one')
  replace(app, text)
  expect((await line).message).toMatch(says)
  expect(app.errors.splice(0)).toHaveLength(1)
  expect(await metric(app, 'infer_configuration_in_force')).toBe(0)
  expect((await chat(app, 'm')).status).toBe(200)
  expect(await enginesOf(app, 'm')).toMatchObject([{ id: old!.id }])

  await edited(app, { models: [fakeModel('m')] })
  expect(await metric(app, 'infer_configuration_in_force')).toBe(1)
  expect(await enginesOf(app, 'm')).toMatchObject([{ id: old!.id }])
})

test('settings that need a restart are named once, and models and pools change all the same', async () => {
  await using app = await startApp({ models: [fakeModel('m')] })
  const late = app.logged('next start')
  const pools = { box: { kind: 'ssh', host: 'nobody@127.0.0.1', port: 1 } }
  const more = { listen: '127.0.0.1:1', limits: { ...limits, adopt_grace: 0, drain_timeout: '7s' }, pools }
  await edited(app, { models: [fakeModel('n')], ...more })
  expect(await late).toMatchObject({ level: 'warn', settings: 'listen, limits.drain_timeout' })
  expect((await chat(app, 'n')).status).toBe(200)
  const status = (await (await app.fetch('/api/system/status')).json()) as { pools: object[] }
  expect(status.pools).toMatchObject([{ name: 'box', unknown: expect.any(String) as string }])

  let again = false
  void app.logged('next start').then(() => {
    again = true
  })
  await edited(app, { models: [fakeModel('m')], ...more })
  expect(again).toBe(false)
})

test('the file is watched however it is replaced', async () => {
  await using app = await startApp({ models: [fakeModel('a')] })
  const text = (id: string) => stringify({ limits, models: [fakeModel(id)] })
  const offered = async () =>
    ((await (await app.fetch('/std/v1/models')).json()) as { data: { id: string }[] }).data.map(({ id }) => id)
  const after = async (change: () => void) => {
    const line = app.logged(readAgain)
    change()
    await line
    return await offered()
  }
  expect(await after(() => writeFileSync(app.configPath, text('written')))).toEqual(['written'])
  const removed = app.logged('keeps the previous one')
  rmSync(app.configPath)
  expect((await removed).message).toContain('The file does not exist any more.')
  expect(app.errors.splice(0)).toHaveLength(1)
  expect(await offered()).toEqual(['written'])
  expect(await after(() => writeFileSync(app.configPath, text('made')))).toEqual(['made'])

  // As Kubernetes mounts a ConfigMap: a link to a file behind a link to a folder that is swapped.
  const folder = (name: string, id: string) => {
    mkdirSync(join(app.dataDir, name))
    writeFileSync(join(app.dataDir, name, 'infer.yaml'), text(id))
  }
  folder('..1', 'first')
  folder('..2', 'second')
  const swap = (to: string) => {
    symlinkSync(to, join(app.dataDir, '..new'))
    renameSync(join(app.dataDir, '..new'), join(app.dataDir, '..data'))
  }
  const linked = () => {
    swap('..1')
    rmSync(app.configPath)
    symlinkSync(join('..data', 'infer.yaml'), app.configPath)
  }
  expect(await after(linked)).toEqual(['first'])
  expect(await after(() => swap('..2'))).toEqual(['second'])
  expect(await after(() => writeFileSync(join(app.dataDir, '..2', 'infer.yaml'), text('through')))).toEqual(['through'])
})

test('a file that never existed is not reported missing; one that was deleted is', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'infer-reload-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const path = join(folder, 'infer.yaml')
  const nothing = { added: [], removed: [], replaced: [], updated: [] }
  const reload = openReload({
    path,
    config: parseConfig('', path),
    check: () => ({ features: new Set() }),
    registry: { replace: () => nothing },
    fleet: { reconfigured: () => Promise.resolve() },
    log: openLog('error', () => undefined),
  })
  onTestFinished(() => reload.close())
  await reload.reload()
  expect(reload.status()).toMatchObject({ fault: null, refused: 0 })
  writeFileSync(path, 'models: []\n')
  await reload.reload()
  rmSync(path)
  await reload.reload()
  await reload.reload()
  expect(reload.status()).toMatchObject({
    fault: expect.stringContaining('The file does not exist any more') as string,
    refused: 2,
  })
})
