import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { fakeModel, startApp, type TestApp } from '../../_app.ts'
import { entry, infer } from '../_infer.ts'
import { fakeServer } from '../_server.ts'
import { hasTerminal, inTerminal } from '../_terminal.ts'

let app: TestApp
let env: Record<string, string>
beforeAll(async () => {
  app = await startApp({ models: [fakeModel('fake'), fakeModel('other')] })
  env = { INFER_DATA_DIR: app.dataDir }
  await app.fetch('/std/v1/embeddings', { body: { model: 'fake', input: 'wake up' } })
})
afterAll(() => app[Symbol.asyncDispose]())

test('the end of both logs, without colours in a pipe', async () => {
  const { exitCode, stdout, stderr } = await infer(['logs'], { env })
  expect([exitCode, stderr]).toEqual([0, ''])
  expect(stdout).toMatch(/^\d\d:\d\d:\d\d info {2}Ready /m)
  expect(stdout).toMatch(/^\d\d:\d\d:\d\d fake listening/m)
  expect(stdout).not.toContain('\u001b')
  expect((await infer(['logs', '-n', '1'], { env })).stdout.trimEnd().split('\n')).toHaveLength(1)
})

test('--json prints one object per line, for the requested model only', async () => {
  const { stdout } = await infer(['logs', 'fake', '--source', 'engine', '--json'], { env })
  const lines = stdout
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line) as { model_id: string; source: string })
  expect(lines.length).toBeGreaterThan(0)
  expect(lines.every(({ model_id, source }) => model_id === 'fake' && source === 'engine')).toBe(true)
})

test('a model that does not exist is refused', async () => {
  const ended = await infer(['logs', 'ghost'], { env })
  expect([ended.exitCode, ended.stdout]).toEqual([1, ''])
  expect(ended.stderr).toContain("There is no model 'ghost' here.")
})

test('--follow continues until Ctrl-C, which exits with 130', async () => {
  const child = spawn(process.execPath, [entry, 'logs', 'other', '-f'], {
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let [stdout, stderr] = ['', '']
  child.stdout.on('data', piece => (stdout += String(piece)))
  child.stderr.on('data', piece => (stderr += String(piece)))
  const status = async () => ((await (await app.fetch('/api/system/status')).json()) as { requests: number }).requests
  await expect.poll(status).toBe(2)
  await app.fetch('/std/v1/embeddings', { body: { model: 'other', input: 'wake up' } })
  await expect.poll(() => stdout).toMatch(/other listening[^]*Engine ready/)
  child.kill('SIGINT')
  expect(((await once(child, 'close')) as [number])[0]).toBe(130)
  expect(stderr).toBe('')
  await expect.poll(status).toBe(1)
})

test('--follow exits with 0 when the server stops, and with 1 when the connection breaks', async () => {
  const line = { time: '2026-11-21T10:20:30.400Z', source: 'server', level: 'info', model_id: null, engine_id: null }
  const { url } = await fakeServer(({ path }, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(`: ping\n\ndata: ${JSON.stringify({ ...line, message: 'Stopping', fields: {} })}\n\n`)
    response.write('event: missed\ndata: {"lines":3}\n\n')
    response.end(path.includes('broken') ? undefined : 'event: end\ndata: {}\n\n')
  })
  const far = { INFER_URL: url, INFER_TOKEN: 'x' }
  expect(await infer(['logs', '-f'], { env: far })).toEqual({
    exitCode: 0,
    stdout: '10:20:30 info  Stopping\n',
    stderr:
      'Warning: 3 lines arrived too fast and were skipped.\nThe server is stopping, so there are no more lines.\n',
  })
  const broken = await infer(['logs', 'broken', '-f'], { env: far })
  expect([broken.exitCode, broken.stdout]).toEqual([1, '10:20:30 info  Stopping\n'])
  expect(broken.stderr).toContain('was lost')
})

test('--follow ends with the reason when the token may no longer read the logs', async () => {
  const { url } = await fakeServer((_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const error = { code: 'invalid_api_key', message: "The token 'ops' (…abcd) is revoked." }
    response.end(`event: error\ndata: ${JSON.stringify({ error })}\n\n`)
  })
  const ended = await infer(['logs', '-f'], { env: { INFER_URL: url, INFER_TOKEN: 'x' } })
  expect([ended.exitCode, ended.stderr]).toEqual([1, expect.stringContaining("The token 'ops' (…abcd) is revoked.")])
})

test.skipIf(!hasTerminal)('a terminal gets colours', async () => {
  const terminal = inTerminal(['logs', 'fake'], env)
  expect(await terminal.ends()).toBe(0)
  expect(terminal.everything()).toContain('\u001b[1mfake\u001b[22m')
})
