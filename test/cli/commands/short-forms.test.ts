import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { tinyChat } from '../../../bin/tiny-chat.ts'
import { fakeModel, startApp } from '../../_app.ts'
import { openHub } from '../../fixtures/hub.ts'
import { runInProcess } from '../_in-process.ts'
import { infer, json, temporaryFolder } from '../_infer.ts'

test('ls and list list models, show shows one, ps lists the loaded ones, stop unloads one', async () => {
  await using app = await startApp({ models: [fakeModel('sound'), fakeModel('other')] })
  const run = (...args: string[]) => infer(args, { env: { INFER_URL: app.url, INFER_TOKEN: app.secret } })
  expect((await run('ls')).stdout).toMatch(/^model .*\nsound +cold .*\nother +cold /)
  const env = { INFER_URL: app.url, INFER_TOKEN: app.secret }
  expect((await runInProcess(['list'], env)).stdout.toString()).toMatch(/^model .*\nsound +cold .*\nother +cold /)
  expect((await runInProcess(['show', 'sound'], env)).stdout.toString()).toMatch(/^sound +cold\n[^]*\nengine +/)
  expect(await run('ps')).toMatchObject({ exitCode: 0, stdout: '', stderr: 'No model is loaded. See: infer ls\n' })
  expect((await run('model', 'load', 'sound')).exitCode).toBe(0)
  expect((await run('ps')).stdout).toMatch(
    /^model +state +memory +on +GPU layers +busy +loaded for +idle for\nsound +ready +16\.0 MiB +cpu +- +0\/\d+ +\d+ s +\d+ s\n$/,
  )
  const placement = {
    on: 'processor',
    gpu_layers: null,
    layers: null,
    detail: 'on the processor',
    advice: null,
    longer_context: [],
  }
  expect(json(await run('ps', '--json'))).toMatchObject({ engines: [{ model_id: 'sound', state: 'ready', placement }] })
  const asked = await runInProcess(['run', 'sound', 'Hi', '--verbose'], env)
  expect(asked.stderr).toMatch(/tokens\/s · .*\n'sound' runs on the processor\.\n$/)
  expect((await runInProcess(['show', 'sound'], env)).stdout.toString()).toContain('\n  runs on the processor\n')
  expect((await runInProcess(['model', 'plan', 'sound'], env)).stdout.toString()).toContain(
    '\nIt runs on the processor.\n',
  )
  const bench = await runInProcess(['model', 'bench', 'sound', '--json'], env)
  const figures = JSON.parse(bench.stdout.toString()) as { runs: { requests: number }[] }
  expect(figures).toMatchObject({ model_id: 'sound', runs_on: 'on the processor', memory_bytes: 16 * 2 ** 20 })
  expect(figures.runs.map(({ requests }) => requests)).toEqual([1, 4, 16])
  for (const command of ['show', 'plan'])
    expect((await runInProcess(['model', command, 'sound'], env)).stdout.toString()).toMatch(
      /benchmark of \d+ s ago: on the processor, 16\.0 MiB, loaded in .*\n.* 1 at a time: .*\n.* 4 at a time: /,
    )
  expect((await runInProcess(['ps'], env)).stdout.toString()).toMatch(/ busy +tokens\/s +loaded for /)
  expect((await run('stop', 'sound')).stdout).toBe("'sound' is unloaded.\n")
  expect(json(await run('ps', '--json'))).toEqual({ engines: [], saved_conversations: [] })
})

test('stop without a model says how to stop the server', async () => {
  const { exitCode, stderr } = await infer(['stop'])
  expect([exitCode, stderr]).toEqual([
    64,
    expect.stringContaining('Name the model to unload. To stop the server, press Ctrl-C in its terminal'),
  ])
})

async function setUp() {
  const hub = await openHub({ 'Owner/Tiny-GGUF': { files: { 'x-Q4_K_M.gguf': tinyChat() } } })
  onTestFinished(() => hub.close())
  const dataDir = temporaryFolder()
  const env = { HF_ENDPOINT: hub.endpoint, HF_HOME: join(dataDir, 'hf'), INFER_DATA_DIR: dataDir }
  const path = join(dataDir, 'infer.yaml')
  return { path, run: (...args: string[]) => infer(args, { env }), written: () => readFileSync(path, 'utf8') }
}

test.each(['hf:Owner/Tiny-GGUF', 'hf.co/Owner/Tiny-GGUF:Q4_K_M', 'Owner/Tiny-GGUF'])(
  'pull %s downloads a model and offers it; rm takes it away',
  async reference => {
    const { run, written } = await setUp()
    const pulled = await run('pull', reference)
    expect([pulled.exitCode, pulled.stderr]).toEqual([0, expect.stringContaining('Downloading x-Q4_K_M.gguf')])
    expect(pulled.stdout).toContain("Added 'tiny'")
    const before = written()
    const again = await run('pull', reference)
    expect([again.exitCode, again.stdout]).toEqual([0, expect.stringContaining("'tiny' is offered already")])
    expect(written()).toBe(before)
    expect((await run('rm', 'tiny', '--yes')).stdout).toContain("Removed 'tiny' from")
    expect(written()).not.toContain('tiny')
  },
)

test('pull explains that a name is one of the Ollama library', async () => {
  const { run } = await setUp()
  const { exitCode, stderr } = await run('pull', 'nemo:12b')
  expect([exitCode, stderr]).toEqual([
    64,
    expect.stringContaining("'nemo:12b' names no repository and no model of the catalog."),
  ])
})

test.each([
  [['backup', 'copy.db'], 'infer backup'],
  [['restore', 'copy.db'], 'infer restore'],
  [['db', 'check'], 'infer db check'],
])('%j is refused while INFER_URL names another server', async (args, name) => {
  const dataDir = temporaryFolder()
  writeFileSync(join(dataDir, 'infer.yaml'), 'models: [{id: m, source: /m.gguf}]\n')
  const env = { INFER_URL: 'https://gpu.example', INFER_TOKEN: 'x', INFER_DATA_DIR: dataDir }
  const { exitCode, stdout, stderr } = await infer(args, { env })
  expect([exitCode, stdout]).toEqual([64, ''])
  expect(stderr).toContain(
    `'${name}' works on the data directory of this machine, but INFER_URL is set to https://gpu.example. Run it on that machine, or unset INFER_URL, or name the directory with --data-dir.`,
  )
})

test.each([
  [['add', '/m.gguf', '--yes'], "'/m.gguf' is no name of the catalog or of a hub. A server elsewhere adds only those"],
  [['add', 'comfyui:g.json', '--yes'], "'comfyui:g.json' is no name of the catalog or of a hub."],
  [['add', 'starter', '--config', 'x.yaml', '--yes'], '--config is for the machine of the server'],
  [['remove', 'm', '--config', 'x.yaml', '--yes'], '--config is for the machine of the server'],
  [['add', 'starter'], 'Add --yes'],
])('of a server elsewhere, model %j is refused', async (args, text) => {
  const ended = await runInProcess(['model', ...args], { INFER_URL: 'https://gpu.example', INFER_TOKEN: 'x' })
  expect([ended.exitCode, ended.failure?.message]).toEqual([64, expect.stringContaining(text)])
})

test('model pull is refused too', async () => {
  const { exitCode, stderr } = await infer(['model', 'pull', 'hf:o/m'], { env: { INFER_URL: 'https://gpu.example' } })
  expect([exitCode, stderr]).toEqual([
    64,
    expect.stringContaining(
      "'infer model pull' downloads to this machine, but INFER_URL is set to https://gpu.example.",
    ),
  ])
})

test('a data directory named on the command line overrides INFER_URL', async () => {
  const dataDir = temporaryFolder()
  const env = { INFER_URL: 'https://gpu.example', INFER_TOKEN: 'x' }
  expect((await infer(['org', 'create', 'acme', '--data-dir', dataDir])).exitCode).toBe(0)
  expect((await infer(['db', 'check', '--data-dir', dataDir], { env })).exitCode).toBe(0)
})
