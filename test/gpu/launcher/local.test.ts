import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { describe, expect, test } from 'vitest'
import { fetchHealth } from '../../../gpu/requests/health.ts'
import { unconfined } from '../../../gpu/sandbox/level.ts'
import { noWrapper } from '../../../gpu/sandbox/wrapper.ts'
import { toolsHere } from '../sandbox/_tools.ts'
import {
  fakeEngine,
  launcherIn,
  noSandbox,
  launchOptions as orderOf,
  survivors,
  temporary,
  until,
  wrappersHere,
} from './_launch.ts'

const listening = (lines: string[]) => lines.some(line => line.startsWith('listening'))

/** Without a sandbox, and with each way to create one. The fake engine imports from the whole repository. */
const ways = [
  ...wrappersHere.map(wrapper => ({ name: wrapper.name as string, wrapper, support: noSandbox, sandbox: unconfined })),
  ...toolsHere.flatMap(tool =>
    (['strict', 'files'] as const).map(level => ({
      name: `a sandbox by ${tool.name}, ${level}`,
      wrapper: noWrapper,
      support: { tool },
      sandbox: { ...unconfined, level, read: [join(import.meta.dirname, '../../..')] },
    })),
  ),
]

test('where files of an engine cannot be written, its start fails at once', async () => {
  const dataDir = temporary()
  const launcher = await launcherIn(dataDir, noWrapper, 'boot-1', noSandbox)
  writeFileSync(join(dataDir, 'home', 'fake'), 'in the way')
  await expect(launcher.start(orderOf('one', [], { sandbox: unconfined }))).rejects.toMatchObject({
    code: 'worker_error',
    message: expect.stringContaining("Cannot write the files of 'fake'"),
  })
})

test('where the socket of an engine cannot be made, its start fails at once', async () => {
  const dataDir = temporary()
  const launcher = await launcherIn(dataDir, noWrapper, 'boot-1', noSandbox)
  writeFileSync(join(dataDir, 'run', 'one'), 'in the way')
  await expect(launcher.start(orderOf('one', [], { sandbox: unconfined }))).rejects.toMatchObject({
    code: 'worker_error',
    message: expect.stringContaining("There is no address for the engine of 'fake'"),
  })
})

describe.each(ways)('with $name', ({ wrapper, support, sandbox }) => {
  const launcherAt = (dataDir: string) => launcherIn(dataDir, wrapper, 'boot-1', support)
  const launchOptions = (launchId: string, flags: string[]) => orderOf(launchId, flags, { sandbox })

  test('an engine is started, answers at its socket and exits on request', async () => {
    const dataDir = temporary()
    const launcher = await launcherAt(dataDir)
    const launched = await launcher.start(launchOptions('one', []))
    await until(() => listening(launcher.logs('one')))
    expect((await fetchHealth(launched.endpoint()!, '/health', [], 5_000)).health).toBe('ready')
    expect(statSync(join(dataDir, 'run')).mode & 0o777).toBe(0o700)
    const record = JSON.parse(readFileSync(join(dataDir, 'run/launches.json'), 'utf8')) as unknown
    expect(record).toMatchObject([{ launchId: 'one', modelId: 'fake' }])

    const { body } = await fetchHealth(launched.endpoint()!, '/stats', [], 5_000)
    // The engine's pid inside its namespace differs; outside it has the pid that infer knows.
    await until(() => readFileSync(`/proc/${launched.pid()}/cmdline`, 'utf8').startsWith(process.execPath))
    expect(JSON.parse(body)).toMatchObject({ environment: { CUDA_VISIBLE_DEVICES: '', OMP_WAIT_POLICY: 'PASSIVE' } })

    await launcher.stop('one', 5_000)
    expect(await launched.exited).toMatchObject({ status: '0' })
    expect(await survivors('one')).toEqual([])
    expect(readFileSync(join(dataDir, 'run/launches.json'), 'utf8')).toBe('[]')
    expect(listening(launcher.logs('one'))).toBe(true)
    await launcher.stop('one', 0)
  })

  test('an engine that exits by itself leaves its exit status and the reason', async () => {
    const launcher = await launcherAt(temporary())
    const { exited } = await launcher.start(launchOptions('dies', ['--exit', '3']))
    const { hint = '', ...ended } = await exited
    expect([ended, hint]).toMatchObject([{ status: '3', lastError: 'RuntimeError: CUDA out of memory' }, ''])
  })

  test('a segmentation fault is reported as such', async () => {
    const launcher = await launcherAt(temporary())
    const { exited } = await launcher.start(launchOptions('faults', ['--segfault-after', '50']))
    expect((await exited).status).toBe('SIGSEGV')
  })

  test('an engine that ignores SIGTERM is killed after its grace period, with its detached grandchild', async () => {
    const launcher = await launcherAt(temporary())
    const { exited } = await launcher.start(launchOptions('stubborn', ['--ignore-term', '--grandchild']))
    await until(() => listening(launcher.logs('stubborn')))
    expect(await survivors('stubborn')).not.toHaveLength(0)
    await launcher.stop('stubborn', 200)
    expect(launcher.logs('stubborn')).toContain('SIGTERM ignored')
    expect((await exited).status).toBe('SIGKILL')
    expect(await survivors('stubborn')).toEqual([])
  })

  test('a stopped (SIGSTOP) engine is killed too', async () => {
    const launcher = await launcherAt(temporary())
    const launched = await launcher.start(launchOptions('frozen', []))
    await until(() => listening(launcher.logs('frozen')))
    process.kill(launched.pid()!, 'SIGSTOP')
    await launcher.stop('frozen', 100)
    expect((await launched.exited).status).toBe('SIGKILL')
  })

  test('a grandchild does not outlive an engine that exits by itself', async () => {
    const launcher = await launcherAt(temporary())
    const { exited } = await launcher.start(
      launchOptions('parent', ['--grandchild', '--exit', '1', '--exit-after', '300']),
    )
    await exited
    expect(launcher.logs('parent').some(line => line.startsWith('grandchild'))).toBe(true)
    expect(await survivors('parent')).toEqual([])
  })

  test('a kill request during the grace period takes effect at once', async () => {
    const launcher = await launcherAt(temporary())
    await launcher.start(launchOptions('hurry', ['--ignore-term']))
    await until(() => listening(launcher.logs('hurry')))
    const gentle = launcher.stop('hurry', 3_600_000)
    await until(() => launcher.logs('hurry').includes('SIGTERM ignored'))
    await launcher.stop('hurry', 0)
    await gentle
    expect(await survivors('hurry')).toEqual([])
  })
})

test('engines that cannot listen on a socket get a port', async () => {
  const launcher = await launcherIn(temporary(), noWrapper)
  const argv = [process.execPath, fakeEngine, '--port', '{port}']
  const { endpoint } = await launcher.start(orderOf('port', [], { argv, channel: 'port' }))
  expect(endpoint()!.origin).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/)
  await until(async () => (await fetchHealth(endpoint()!, '/health', [], 5_000)).health === 'ready')
})

test('a data directory with a long name still gets sockets', async () => {
  const launcher = await launcherIn(join(temporary(), 'x'.repeat(120)), noWrapper)
  const { endpoint } = await launcher.start(orderOf('long', []))
  expect(endpoint()!.socketPath!.length).toBeLessThan(108)
  await until(async () => (await fetchHealth(endpoint()!, '/health', [], 5_000)).health === 'ready')
})

test('a missing program is named', async () => {
  const launcher = await launcherIn(temporary(), noWrapper)
  const started = launcher.start(orderOf('none', [], { argv: ['no-such-engine', '{socket}'] }))
  await expect(started).rejects.toMatchObject({
    code: 'worker_error',
    message: "The program 'no-such-engine' that runs 'fake' is not installed here, or not on PATH.",
  })
  const withPath = launcher.start(orderOf('none', [], { argv: ['/opt/secret/engine', '{socket}'] }))
  await expect(withPath).rejects.toMatchObject({
    message: expect.not.stringContaining('secret') as string,
    engineText: expect.stringContaining("'/opt/secret/engine'") as string,
  })
})

test('engines are not started from a worker thread, because they would end with it', async () => {
  const dataDir = temporary()
  const script = join(dataDir, 'worker.mts')
  const local = join(import.meta.dirname, '../../../gpu/launcher/local.ts')
  const wrapper = join(import.meta.dirname, '../../../gpu/sandbox/wrapper.ts')
  writeFileSync(
    script,
    `import { parentPort } from 'node:worker_threads'
     import { openLocalLauncher } from ${JSON.stringify(local)}
     import { noWrapper } from ${JSON.stringify(wrapper)}
     const launcher = await openLocalLauncher({ dataDir: ${JSON.stringify(dataDir)}, bootId: 'b', host: {}, wrapper: noWrapper, support: { tool: null, why: '' }, log: {}, devices: async () => ({ devices: [], reason: null, broken: false }) })
     await launcher.start({ launchId: 'a', engineId: 'a', sandbox: { level: 'none', required: false, read: [], write: [], programs: [] }, modelId: 'm', argv: ['/bin/true'], channel: 'port', env: {}, visibleDevices: {} })
       .then(() => parentPort.postMessage('started'), error => parentPort.postMessage(error.message))`,
  )
  const worker = new Worker(script)
  const said = await new Promise(resolve => worker.once('message', resolve))
  await worker.terminate()
  expect(said).toMatch(/main thread/)
})
