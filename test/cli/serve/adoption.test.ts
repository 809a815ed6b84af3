import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { stringify } from 'yaml'
import { checkKeptEngines, keptEngines } from '../../../cli/doctor/kept-engines.ts'
import { sendSignal } from '../../../gpu/launcher/processes.ts'
import { fakeModel } from '../../_app.ts'
import { endSurvivors, survivors } from '../../gpu/launcher/_launch.ts'
import { inferProcess, temporaryFolder } from '../_infer.ts'
import { serve } from '../_serve.ts'

/** A data directory with one model, the fake engine, and a function that starts its server and sends it a chat. */
function prepare(more: object = {}, { flags = [], gateways = 1 }: { flags?: string[]; gateways?: number } = {}) {
  const dataDir = temporaryFolder()
  const model = fakeModel('fake', ['--grandchild', ...flags], { concurrency: 1 })
  const limits = { min_free_disk: '1MiB', ballast: '1MiB', ...more }
  const config = { listen: '127.0.0.1:0', gateway_processes: gateways, limits, models: [model] }
  writeFileSync(join(dataDir, 'infer.yaml'), stringify(config))
  const start = async () => {
    const server = await serve(dataDir)
    const headers = {
      authorization: `Bearer ${readFileSync(join(dataDir, 'root-token'), 'utf8').trim()}`,
      'content-type': 'application/json',
    }
    const chat = async (content = 'Hello') => {
      const body = JSON.stringify({ model: 'fake', messages: [{ role: 'user', content }] })
      return (await fetch(`${server.url}/std/v1/chat/completions`, { method: 'POST', headers, body })).status
    }
    const status = async () => {
      const answer = await fetch(`${server.url}/api/system/status`, { headers })
      return (await answer.json()) as {
        engines: { id: string; busy: number; taken_over_at: number | null }[]
        waiting: unknown[]
      }
    }
    const engine = async () => (await status()).engines[0]!.id
    const busy = async () => (await status()).engines[0]!.busy
    const waiting = async () => (await status()).waiting.length
    const takenOverAt = async () => (await status()).engines[0]!.taken_over_at
    return { ...server, dataDir, chat, engine, busy, takenOverAt, waiting }
  }
  return start
}

/** Every process of the engine is killed after the test, should it have failed. */
const cleanUp = (engineId: string) =>
  onTestFinished(async () => {
    await endSurvivors(`${engineId}-1`)
  })

test('after kill -9 the next server answers with the same engine', async () => {
  const start = prepare()
  const first = await start()
  expect(await first.chat()).toBe(200)
  const engineId = await first.engine()
  cleanUp(engineId)
  expect(await first.takenOverAt()).toBeNull()
  first.child.kill('SIGKILL')
  await once(first.child, 'exit')
  expect((await survivors(`${engineId}-1`)).length).toBeGreaterThan(0)

  const next = await start()
  expect(await next.chat()).toBe(200)
  expect(await next.engine()).toBe(engineId)
  expect(next.stderr()).toContain("Took over the engine of 'fake'")
  expect(await next.takenOverAt()).toBeGreaterThan(Date.now() / 1_000 - 30)
  const { stderr } = await inferProcess(['ps', '--data-dir', next.dataDir])
  expect(stderr).toContain('fake was kept over a restart of the server')
  expect(checkKeptEngines(await keptEngines(next.dataDir))).toMatchObject({
    state: 'fine',
    detail: expect.stringMatching(/^kept over a restart of the server: fake \d+ s ago$/) as string,
  })
  expect(next.stderr()).not.toContain('Engine ready')

  // A stop ends it.
  next.child.kill('SIGTERM')
  expect(await next.ends()).toBe(0)
  expect(await survivors(`${engineId}-1`)).toEqual([])
})

test('a take-over keeps the engine, and calls that wait for it are answered', async () => {
  const first = await prepare()()
  expect(await first.chat()).toBe(200)
  const engineId = await first.engine()
  cleanUp(engineId)
  const order: string[] = []
  const calls = [1, 2, 3].map(() => first.chat('mode:slow,ms=2500').finally(() => order.push('old')))
  await expect.poll(() => first.waiting()).toBe(2)
  const { stdout, exitCode } = await inferProcess(['serve', '--takeover', '--data-dir', first.dataDir])
  expect(exitCode).toBe(0)
  const pid = Number(/process (\d+)\)/.exec(stdout)![1])
  onTestFinished(() => sendSignal(pid, 'SIGKILL'))
  // The engine has one slot, which requests of the old server use.
  expect(await first.chat().finally(() => order.push('new'))).toBe(200)
  expect(await first.engine()).toBe(engineId)
  expect(await Promise.all(calls)).toEqual([200, 200, 200])
  expect(order).toEqual(['old', 'old', 'old', 'new'])
  process.kill(pid, 'SIGTERM')
  await expect.poll(() => survivors(`${engineId}-1`)).toEqual([])
})

test.each([1, 2])(
  'a take-over waits for an engine that is being loaded for callers, with %i gateway processes',
  async gateways => {
    const first = await prepare({}, { flags: ['--ready-after', '6000'], gateways })()
    const calls = [first.chat(), first.chat()]
    await expect.poll(() => first.waiting()).toBe(2)
    await expect.poll(() => first.engine().catch(() => null)).not.toBeNull()
    const engineId = await first.engine()
    cleanUp(engineId)
    const { stdout, stderr, exitCode } = await inferProcess(['serve', '--takeover', '--data-dir', first.dataDir])
    expect(exitCode).toBe(0)
    const pid = Number(/process (\d+)\)/.exec(stdout)![1])
    onTestFinished(() => sendSignal(pid, 'SIGKILL'))
    expect(await Promise.all(calls)).toEqual([200, 200])
    expect(stderr).toContain('Requests wait for models that are being loaded: fake.')
    expect(await first.engine()).toBe(engineId)
    process.kill(pid, 'SIGTERM')
    await expect.poll(() => survivors(`${engineId}-1`)).toEqual([])
  },
)

test('an engine that would be started differently now ends after the requests of the old server', async () => {
  const first = await prepare()()
  expect(await first.chat()).toBe(200)
  const engineId = await first.engine()
  cleanUp(engineId)
  // Not the file that the old server follows.
  const changed = join(first.dataDir, 'changed.yaml')
  const config = readFileSync(join(first.dataDir, 'infer.yaml'), 'utf8')
  writeFileSync(changed, config.replace('concurrency: 1', "concurrency: 1\n    env: {CHANGED: '1'}"))
  const call = first.chat('mode:slow,ms=6000')
  await expect.poll(() => first.busy()).toBe(1)
  const takeover = ['serve', '--takeover', '--data-dir', first.dataDir, '--config', changed]
  const { stdout, exitCode } = await inferProcess(takeover)
  expect(exitCode).toBe(0)
  const pid = Number(/process (\d+)\)/.exec(stdout)![1])
  onTestFinished(() => sendSignal(pid, 'SIGKILL'))
  expect(await call).toBe(200)
  await expect.poll(() => survivors(`${engineId}-1`), { timeout: 5_000 }).toEqual([])
  expect(await first.chat()).toBe(200)
  const next = await first.engine()
  cleanUp(next)
  expect(next).not.toBe(engineId)
  process.kill(pid, 'SIGTERM')
  await expect.poll(() => survivors(`${next}-1`)).toEqual([])
})

test.each([
  ['a second signal', {}, ['SIGTERM', 'SIGTERM']],
  ['kill -9 with adopt_grace 0', { adopt_grace: 0 }, ['SIGKILL']],
] as const)('%s leaves no engine after 2 s', async (_how, limits, signals) => {
  const server = await prepare(limits)()
  expect(await server.chat()).toBe(200)
  const engineId = await server.engine()
  cleanUp(engineId)
  for (const signal of signals) server.child.kill(signal)
  await server.ends()
  const deadline = performance.now() + 2_000
  let left = await survivors(`${engineId}-1`)
  while (left.length > 0 && performance.now() < deadline) left = await survivors(`${engineId}-1`)
  expect(left).toEqual([])
})
