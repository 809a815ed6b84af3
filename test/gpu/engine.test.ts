import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type EngineOptions, exitReason, openEngine } from '../../gpu/engine.ts'
import { unconfined } from '../../gpu/sandbox/level.ts'
import { fakeEngine, launcherIn, survivors, temporary, until, wrappersHere } from './launcher/_launch.ts'

const [wrapper] = wrappersHere

let count = 0
async function engineWith(flags: string[], of: Partial<EngineOptions> = {}) {
  const dataDir = temporary()
  const launcher = await launcherIn(dataDir, wrapper!)
  const engineId = `test-${process.pid}-${++count}`
  const channel = of.channel ?? 'socket'
  const exits: string[] = []
  const engine = openEngine(
    {
      engineId,
      modelId: 'fake',
      channel,
      sandbox: unconfined,
      env: {},
      visibleDevices: {},
      headers: [],
      healthPath: '/health',
      loadStallMs: 30_000,
      graceMs: 5_000,
      argv: [process.execPath, fakeEngine, `--${channel}`, `{${channel}}`, ...flags],
      ...of,
    },
    launcher,
    reason => exits.push(reason),
  )
  onTestFinished(() => engine.stop('the test is over', 0))
  return { engine, exits, dataDir, launchId: `${engineId}-1` }
}

test('it is ready when its health check succeeds, and concurrent callers join the same start', async () => {
  const { engine, launchId } = await engineWith(['--ready-after', '300'])
  expect(engine.state()).toBe('stopped')
  const both = [engine.ready(), engine.ready()]
  expect(engine.state()).toBe('starting')
  await Promise.all(both)
  await engine.ready()
  expect(engine.state()).toBe('ready')
  expect(engine.pid()).toBeGreaterThan(0)
  expect(engine.logs().filter(line => line.startsWith('listening'))).toHaveLength(1)
  await engine.stop('enough')
  expect(engine.state()).toBe('stopped')
  expect(await survivors(launchId)).toEqual([])
})

test('one that does not listen at first is loading, not failed', async () => {
  const { engine } = await engineWith(['--refuse-for', '300'])
  await engine.ready()
  expect(engine.state()).toBe('ready')
})

describe('a failed start gives the reason and leaves no process behind', () => {
  const cases: [name: string, flags: string[], of: Partial<EngineOptions>, message: RegExp][] = [
    ['it ends at once', ['--exit', '3'], {}, /^Engine exited \(3\): out of memory\.$/],
    ['it ends while loading', ['--hang', '--exit', '1', '--exit-after', '200'], {}, /^Engine exited \(1\)/],
    ['a segmentation fault', ['--hang', '--segfault-after', '100'], {}, /^Engine exited \(SIGSEGV\)/],
    ['it hangs', ['--hang'], { loadStallMs: 300 }, /^Engine made no progress in loading for 300 ms\.$/],
    ['it stops itself', ['--hang', '--freeze-after', '50'], { loadStallMs: 500 }, /no progress in loading/],
    [
      'it goes on for ever',
      [],
      // A shell starts at once even on a busy machine, and a node does not.
      { loadStallMs: 500, argv: ['/bin/sh', '-c', 'while :; do echo "shard $((shard += 1))"; sleep 0.05; done'] },
      /^Engine was still not ready after 5 s\.$/,
    ],
    // So long that it answers even on a busy machine.
    ['its health is somewhere else', [], { healthPath: '/healthy', loadStallMs: 3_000 }, /answered 401 at \/healthy/],
  ]
  test.each(cases)('%s', async (_name, flags, of, message) => {
    const { engine, exits, launchId } = await engineWith(flags, { env: { INFER_ENGINE_KEY: 'k' }, ...of })
    await expect(engine.ready()).rejects.toThrow(message)
    expect(engine.state()).toBe('stopped')
    expect(await survivors(launchId)).toEqual([])
    expect(exits).toEqual([])
  })
})

test('it can be started again after a failure', async () => {
  const file = join(temporary(), 'started')
  const { engine } = await engineWith(['--port-race', file])
  await expect(engine.ready()).rejects.toThrow(/its port is in use/)
  await engine.ready()
  expect(engine.state()).toBe('ready')
})

test('a port that another program took first is replaced by another', async () => {
  const file = join(temporary(), 'started')
  const { engine } = await engineWith(['--port-race', file], { channel: 'port' })
  await engine.ready()
  expect(engine.endpoint()?.origin).toMatch(/:\d+$/)
})

test('one that crashes while ready reports it once, with the reason', async () => {
  const { engine, exits } = await engineWith(['--exit', '3', '--exit-after', '700'])
  await engine.ready()
  await until(() => exits.length > 0)
  expect(exits).toEqual(['Engine exited (3): out of memory.'])
  expect(engine.state()).toBe('stopped')
  await engine.stop('again')
  expect(exits).toHaveLength(1)
})

test('a stop is not reported as an exit', async () => {
  const { engine, exits } = await engineWith([])
  await engine.ready()
  await Promise.all([engine.stop('one'), engine.stop('two')])
  expect(exits).toEqual([])
})

test('a stop ends a start, and its waiting callers get an error', async () => {
  const { engine, launchId } = await engineWith(['--hang'])
  const ready = engine.ready()
  const heard = expect(ready).rejects.toThrow(/stopped while it was loading: changed our mind/)
  await until(async () => (await survivors(launchId)).length > 0)
  await engine.stop('changed our mind')
  await heard
  expect(await survivors(launchId)).toEqual([])
})

test('a stop in the same tick as the start ends it too', async () => {
  const { engine, launchId } = await engineWith([])
  const heard = expect(engine.ready()).rejects.toThrow(/stopped while it was loading/)
  await engine.stop('at once')
  await heard
  expect(engine.state()).toBe('stopped')
  expect(await survivors(launchId)).toEqual([])
})

test('a request for ready during a stop waits for the stop and starts again', async () => {
  const { engine } = await engineWith([])
  await engine.ready()
  const first = engine.pid()
  const stopping = engine.stop('once')
  await engine.ready()
  await stopping
  expect(engine.state()).toBe('ready')
  expect(engine.pid()).not.toBe(first)
})

test('one that ignores SIGTERM is killed after its grace period, and at once when no time is left', async () => {
  const { engine, launchId } = await engineWith(['--ignore-term', '--grandchild'], { graceMs: 3_600_000 })
  await engine.ready()
  const gentle = engine.stop('please')
  await until(() => engine.logs().includes('SIGTERM ignored'))
  await engine.stop('now', 0)
  await gentle
  expect(await survivors(launchId)).toEqual([])
})

test.for<[status: string, lastError: string, reason: string]>([
  ['SIGKILL', "error: the prompt 'my diagnosis is …' is too long: out of memory", 'Engine exited (SIGKILL).'],
  ['SIGSEGV', 'failed to decode /home/ann/letter.txt', 'Engine exited (SIGSEGV).'],
  ['SIGABRT', 'vk::Device::allocateMemory: ErrorOutOfDeviceMemory', 'Engine exited (SIGABRT): out of memory.'],
  ['SIGABRT', 'GGML_ASSERT(n > 0) failed', 'Engine exited (SIGABRT).'],
  ['1', "error: the prompt 'my diagnosis is …' is too long", 'Engine exited (1).'],
  ['1', 'CUDA error: out of memory for the request of org_2', 'Engine exited (1): out of memory.'],
  ['127', '/bin/sh: vllm: command not found', 'Engine exited (127): a program or file is missing.'],
])('an engine that ended with %s after %j is reported as %j', ([status, lastError, reason]) =>
  expect(exitReason({ status, lastError })).toBe(reason),
)
