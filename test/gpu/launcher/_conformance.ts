import { describe, expect, onTestFinished, test } from 'vitest'
import type { Launch, Launcher, LaunchOptions } from '../../../gpu/launcher/launcher.ts'
import { fetchHealth } from '../../../gpu/requests/health.ts'
import { until } from './_launch.ts'

/** Where a launcher is tried: each test has a place of its own, in which nothing runs. */
export interface LauncherPlace {
  /** Opens the launcher, as a server does. A second one is the next server: the first has left, or was killed. */
  open(): Promise<Launcher>
  /** How the fake engine is started there, with these flags. */
  options(launchId: string, flags: readonly string[], more?: Partial<LaunchOptions>): LaunchOptions
  /** The processes of a launch, wherever they run. */
  processes(launchId: string): Promise<readonly number[]>
  /** Starts an engine and its grandchild from a server that is killed then. */
  startAndDie(launchId: string): Promise<void>
  /** Milliseconds for which an engine outlives its server. */
  orphanGraceMs: number
  /** Makes every list fail, or work again; absent where a list cannot fail. */
  failLists?(fail: boolean): void | Promise<void>
}

const signal = () => AbortSignal.timeout(30_000)

/** What every launcher must do, tried with real processes. */
export function describeLauncher(name: string, place: () => Promise<LauncherPlace>): void {
  let count = 0
  const newId = () => `wkr_${process.pid}x${++count}-1`

  /** A launcher, and how to ask it. */
  async function setUp() {
    const at = await place()
    const launcher = await at.open()
    return { at, launcher, launchId: newId() }
  }

  const find = async (launcher: Launcher, launchId: string): Promise<Launch | undefined> =>
    (await launcher.list(signal())).find(one => one.launchId === launchId)

  async function seen(launcher: Launcher, launchId: string, state: Launch['state']): Promise<Launch> {
    await until(async () => (await find(launcher, launchId))?.state === state)
    return (await find(launcher, launchId))!
  }

  async function answers(launcher: Launcher, launchId: string): Promise<Launch> {
    await until(async () => {
      const endpoint = (await find(launcher, launchId))?.endpoint
      return !!endpoint && (await fetchHealth(endpoint, '/health', [], 2_000)).health === 'ready'
    })
    return (await find(launcher, launchId))!
  }

  async function printed(launcher: Launcher, launchId: string, from = 0): Promise<string> {
    let text = ''
    for await (const { at, bytes } of launcher.logs(launchId, from, signal())) {
      expect(at).toBe(from + Buffer.byteLength(text))
      text += Buffer.from(bytes).toString()
    }
    return text
  }

  describe(name, () => {
    test('an engine is started, answers where the list says, and ends when it is stopped', async () => {
      const { at, launcher, launchId } = await setUp()
      expect(await launcher.list(signal())).toEqual([])
      await launcher.start(at.options(launchId, []), signal())
      const launch = await answers(launcher, launchId)
      expect(launch).toMatchObject({ state: 'running', engineId: launchId, modelId: 'fake', status: null })
      expect(launch.endpoint!.generation).toBeGreaterThan(0)
      await launcher.stop(launchId, 5_000, signal())
      expect(await seen(launcher, launchId, 'gone')).toMatchObject({ status: '0' })
      expect(await at.processes(launchId)).toEqual([])
    })

    test('two starts with one id are one engine, and one that has ended is not started again', async () => {
      const { at, launcher, launchId } = await setUp()
      const options = at.options(launchId, [])
      await Promise.all([launcher.start(options, signal()), launcher.start(options, signal())])
      await answers(launcher, launchId)
      const before = await at.processes(launchId)
      await launcher.start(options, signal())
      expect(await at.processes(launchId)).toEqual(before)
      expect((await launcher.list(signal())).map(one => one.launchId)).toEqual([launchId])
      await launcher.stop(launchId, 0, signal())
      await seen(launcher, launchId, 'gone')
      await launcher.start(options, signal())
      expect(await at.processes(launchId)).toEqual([])
      expect((await printed(launcher, launchId)).match(/listening/g)).toHaveLength(1)
    })

    test('the next server finds it running, with its note, and may stop it', async () => {
      const { at, launcher, launchId } = await setUp()
      await launcher.start(at.options(launchId, [], { env: { SOME_TOKEN: 'a-secret-of-it' } }), signal())
      const before = await answers(launcher, launchId)
      const processes = await at.processes(launchId)
      launcher.note(launchId, { ready: true })
      await launcher.leave()
      const next = await at.open()
      expect(await find(next, launchId)).toMatchObject({
        state: 'running',
        modelId: 'fake',
        endpoint: before.endpoint,
        note: { ready: true },
        secrets: ['a-secret-of-it'],
      })
      expect(await at.processes(launchId)).toEqual(processes)
      await answers(next, launchId)
      await next.stop(launchId, 0, signal())
      await seen(next, launchId, 'gone')
      expect(await at.processes(launchId)).toEqual([])
    })

    test('one whose server was killed is found by the next one', async () => {
      const at = await place()
      const launchId = newId()
      await at.startAndDie(launchId)
      const next = await at.open()
      await answers(next, launchId)
      expect(await at.processes(launchId)).not.toEqual([])
    })

    test('nothing of it is left 10 s after the grace if no server comes', async () => {
      const at = await place()
      const launchId = newId()
      await at.startAndDie(launchId)
      const killedAt = performance.now()
      expect((await at.processes(launchId)).length).toBeGreaterThanOrEqual(2)
      await until(async () => (await at.processes(launchId)).length === 0)
      expect(performance.now() - killedAt).toBeLessThan(at.orphanGraceMs + 10_000)
    })

    test('it can be stopped twice, and what was never started too', async () => {
      const { at, launcher, launchId } = await setUp()
      await launcher.start(at.options(launchId, []), signal())
      await answers(launcher, launchId)
      await Promise.all([launcher.stop(launchId, 5_000, signal()), launcher.stop(launchId, 5_000, signal())])
      await seen(launcher, launchId, 'gone')
      await launcher.stop(launchId, 0, signal())
      await launcher.stop('wkr_never-1', 0, signal())
      expect(await find(launcher, 'wkr_never-1')).toBeUndefined()
    })

    test('a stop is accepted at once, and a later one shortens the grace', async () => {
      const { at, launcher, launchId } = await setUp()
      await launcher.start(at.options(launchId, ['--ignore-term']), signal())
      await answers(launcher, launchId)
      await launcher.stop(launchId, 3_600_000, signal())
      expect(await find(launcher, launchId)).toMatchObject({ state: 'ending' })
      await launcher.stop(launchId, 0, signal())
      expect(await seen(launcher, launchId, 'gone')).toMatchObject({ status: 'SIGKILL' })
    })

    test('a kill leaves no descendant, also none in a session of its own', async () => {
      const { at, launcher, launchId } = await setUp()
      await launcher.start(at.options(launchId, ['--ignore-term', '--grandchild']), signal())
      await answers(launcher, launchId)
      expect((await at.processes(launchId)).length).toBeGreaterThanOrEqual(2)
      await launcher.stop(launchId, 100, signal())
      await seen(launcher, launchId, 'gone')
      expect(await at.processes(launchId)).toEqual([])
    })

    test('its output is read from any byte, while it runs and after its end', async () => {
      const { at, launcher, launchId } = await setUp()
      await launcher.start(at.options(launchId, ['--exit', '3', '--exit-after', '300']), signal())
      const whole = await printed(launcher, launchId)
      expect(whole).toMatch(/listening[^]*out of memory/)
      expect(await printed(launcher, launchId, 7)).toBe(whole.slice(7))
      expect(await printed(launcher, launchId, Buffer.byteLength(whole))).toBe('')
    })

    test('a reader of its output leaves when it is told to', async () => {
      const { at, launcher, launchId } = await setUp()
      await launcher.start(at.options(launchId, []), signal())
      const leaving = new AbortController()
      const read = launcher.logs(launchId, 0, leaving.signal)
      for await (const { bytes } of read) if (bytes.length > 0) leaving.abort()
      expect(await find(launcher, launchId)).toMatchObject({ state: 'running' })
    })

    test('one that ends by itself is listed as gone, with its status and reason', async () => {
      const { at, launcher, launchId } = await setUp()
      await launcher.start(at.options(launchId, ['--exit', '3']), signal())
      const { status, reason, pid, endpoint } = await seen(launcher, launchId, 'gone')
      expect([status, pid, endpoint]).toEqual(['3', null, null])
      expect(reason).toMatch(/3/)
    })

    test('a change of the list is announced', async () => {
      const { at, launcher, launchId } = await setUp()
      const heard = Promise.withResolvers<void>()
      await launcher.start(at.options(launchId, ['--exit', '1', '--exit-after', '1500']), signal())
      await answers(launcher, launchId)
      const stop = launcher.watch(() => {
        void find(launcher, launchId).then(one => one?.state === 'gone' && heard.resolve())
      })
      onTestFinished(stop)
      await heard.promise
    })

    test('a launch that cannot start is refused with a sentence, and nothing of it is listed', async () => {
      const { at, launcher, launchId } = await setUp()
      const options = at.options(launchId, [], { argv: ['no-such-engine', '{socket}'] })
      await expect(launcher.start(options, signal())).rejects.toMatchObject({
        code: 'worker_error',
        message: expect.stringContaining("'no-such-engine'") as string,
      })
      expect(await launcher.list(signal())).toEqual([])
    })

    test('its devices are listed', async () => {
      const { launcher } = await setUp()
      const { devices } = await launcher.capacity(signal())
      for (const { id, totalBytes } of devices) expect([id, totalBytes > 0]).toEqual([id, true])
      expect(devices).not.toEqual([])
    })

    test('a list that fails rejects, and is complete when it works again', async context => {
      const { at, launcher, launchId } = await setUp()
      if (!at.failLists) return context.skip('Its list cannot fail.')
      await launcher.start(at.options(launchId, []), signal())
      await answers(launcher, launchId)
      await at.failLists(true)
      await expect(launcher.list(signal())).rejects.toThrow()
      await at.failLists(false)
      expect(await find(launcher, launchId)).toMatchObject({ state: 'running' })
    })
  })
}
