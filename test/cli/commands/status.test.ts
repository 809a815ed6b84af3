import { expect, test } from 'vitest'
import { fakeModel, startApp } from '../../_app.ts'
import { runInProcess } from '../_in-process.ts'
import { infer, json } from '../_infer.ts'
import { answer, fakeServer } from '../_server.ts'
import { hasTerminal, inTerminal } from '../_terminal.ts'

test('a pipe gets plain lines, and with --json one JSON object, as the API returns it', async () => {
  await using app = await startApp({ models: [fakeModel('fake')] })
  const env = { INFER_DATA_DIR: app.dataDir }
  const plain = (await runInProcess(['status'], env)).stdout.toString()
  expect(plain).toMatch(/^Models\nmodel +status.*\nfake +cold/m)
  expect(plain).not.toContain('{')
  const ended = await infer(['status', '--json'], { env })
  expect([ended.exitCode, ended.stderr]).toEqual([0, ''])
  expect(json(ended)).toMatchObject({ object: 'system.status', models: [{ model_id: 'fake', status: 'cold' }] })
})

test.skipIf(!hasTerminal)('a terminal gets a live view of the server, until q', async () => {
  await using app = await startApp({ models: [fakeModel('fake')] })
  const terminal = inTerminal(['status', '--every', '200ms'], { INFER_DATA_DIR: app.dataDir })
  await terminal.sees('\u001b[?1049h\u001b[?25l')
  await terminal.sees('fake')
  await terminal.sees('cold')
  await app.fetch('/std/v1/embeddings', { body: { model: 'fake', input: 'wake up' } })
  await terminal.sees('warm')
  terminal.types('q')
  expect(await terminal.ends()).toBe(0)
  const shown = terminal.everything()
  // The previous screen is restored, and the last frame stays below it.
  const [, after] = shown.split('\u001b[?25h\u001b[?1049l')
  expect(after).toContain('warm')
  expect(after).not.toContain('q quits')
  // Nothing is cleared between frames, because that would flicker.
  expect(shown.split('\u001b[2J')).toHaveLength(2)
})

test.skipIf(!hasTerminal)('a lost connection is reported, and the view reconnects', async () => {
  let up = true
  const snapshot = {
    version: '9.9.9',
    time: 2,
    started_at: 1,
    requests: 1,
    jobs: { pending: 0, processing: 0 },
    devices: [],
    engines: [],
    models: [],
  }
  const { url } = await fakeServer((_, response) =>
    up
      ? answer(response, 200, snapshot)
      : answer(response, 503, { error: { code: 'shutting_down', message: 'The server is stopping.' } }),
  )
  const terminal = inTerminal(['status', '--every', '200ms'], { INFER_URL: url, INFER_TOKEN: 'x' })
  await terminal.sees('9.9.9')
  up = false
  await terminal.sees('The server is stopping.')
  up = true
  await terminal.sees('q quits')
  terminal.types('\u0003')
  expect(await terminal.ends()).toBe(0)
})

test.skipIf(!hasTerminal)('--once prints one frame without the full screen', async () => {
  await using app = await startApp({ models: [fakeModel('fake')] })
  const terminal = inTerminal(['status', '--once'], { INFER_DATA_DIR: app.dataDir })
  expect(await terminal.ends()).toBe(0)
  expect(terminal.everything()).toContain('fake')
  expect(terminal.everything()).not.toContain('\u001b[?1049h')
})
