import { expect, onTestFinished, test } from 'vitest'
import { Failure } from '../../../core/failure.ts'
import type { Launch, Launcher } from '../../../gpu/launcher/launcher.ts'
import { openLaunches } from '../../../gpu/launcher/launches.ts'
import { openOutputs } from '../../../gpu/launcher/outputs.ts'
import { keptLog, launchOptions, noDevices } from './_launch.ts'

const running: Omit<Launch, 'launchId' | 'engineId' | 'modelId'> = {
  state: 'running',
  reason: null,
  node: null,
  pid: null,
  endpoint: { origin: 'http://node:1', generation: 1 },
  status: null,
  endsAt: null,
  note: null,
  secrets: [],
}

/** A cluster whose scheduler fails as told: it starts nothing, and says what the test wants. */
async function clusterWith(of: Partial<Launcher> = {}) {
  const listed = new Map<string, Launch>()
  const calls = { start: 0, list: 0, stop: [] as string[] }
  let changed = () => {}
  let listFails: Error | undefined
  const put = (launchId: string, more: Partial<Launch> = {}) => {
    listed.set(launchId, { ...running, launchId, engineId: launchId, modelId: 'fake', ...more })
    changed()
  }
  const launcher: Launcher = {
    pollMs: 60_000,
    async start({ launchId }) {
      calls.start++
      listed.set(launchId, { ...running, launchId, engineId: launchId, modelId: 'fake' })
    },
    async list() {
      calls.list++
      if (listFails) throw listFails
      return [...listed.values()]
    },
    async stop(launchId) {
      calls.stop.push(launchId)
      listed.delete(launchId)
      changed()
    },
    async *logs() {},
    capacity: noDevices,
    watch(listener) {
      changed = listener
      return () => {}
    },
    note() {},
    async leave() {},
    async close() {},
    ...of,
  }
  const log = keptLog()
  const limits = { start: 200, list: 200, stop: 200, starts: 400, retry: 10 }
  const launches = await openLaunches({ launcher, outputs: openOutputs(), log, limits })
  onTestFinished(() => launches.close())
  return { launches, listed, put, calls, log, announce: () => changed(), fail: (error?: Error) => (listFails = error) }
}

const isOver = (exited: Promise<unknown>) => Promise.race([exited.then(() => true), Promise.resolve(false)])

test('a list that fails ends nothing, and a later one without the launch does', async () => {
  const { launches, listed, announce, fail, calls, log } = await clusterWith()
  const { exited } = await launches.start(launchOptions('a', []))
  fail(new Error('slurmctld is down'))
  listed.clear()
  const before = calls.list
  announce()
  await expect.poll(() => calls.list).toBeGreaterThan(before + 2)
  expect(await isOver(exited)).toBe(false)
  expect(log.lines).toEqual([expect.stringContaining('It is not known which engines run')])
  fail()
  expect(await exited).toMatchObject({ status: 'ended' })
  expect(log.lines).toHaveLength(2)
})

test('a list that never answers fails in time', async () => {
  let hangs = false
  const { launches, announce, log } = await clusterWith({
    list: () =>
      hangs ? new Promise(() => {}) : Promise.resolve([{ ...running, launchId: 'a', engineId: 'a', modelId: 'm' }]),
  })
  const { exited } = await launches.start(launchOptions('a', []))
  hangs = true
  announce()
  await expect.poll(() => log.lines.join()).toMatch(/It is not known which engines run/)
  expect(await isOver(exited)).toBe(false)
})

test('a start whose answer is lost is repeated, and is one launch', async () => {
  let attempts = 0
  const started = new Set<string>()
  const { launches } = await clusterWith({
    async start({ launchId }) {
      started.add(launchId)
      if (++attempts < 3) throw new Error('connection lost')
    },
    list: async () => [...started].map(launchId => ({ ...running, launchId, engineId: launchId, modelId: 'fake' })),
  })
  const [one, two] = await Promise.all(['a', 'a'].map(id => launches.start(launchOptions(id, []))))
  expect(one).toBe(two)
  expect(one?.endpoint()).toMatchObject({ origin: 'http://node:1' })
  expect(attempts).toBe(3)
})

test('a start that is refused is not repeated', async () => {
  let attempts = 0
  const { launches } = await clusterWith({
    async start() {
      attempts++
      throw new Failure('worker_error', 'No such partition.')
    },
  })
  await expect(launches.start(launchOptions('a', []))).rejects.toThrow('No such partition.')
  expect(attempts).toBe(1)
})

test('a launch that was given up and appears later is stopped', async () => {
  const { launches, put, calls } = await clusterWith({ start: () => Promise.reject(new Error('connection lost')) })
  await expect(launches.start(launchOptions('late', []))).rejects.toThrow('could not be started')
  put('late')
  await expect.poll(() => calls.stop).toEqual(['late'])
  expect(launches.left()).toEqual([])
})

test('a stop is repeated until it is accepted', async () => {
  let attempts = 0
  const { launches, listed, announce } = await clusterWith({
    async stop(launchId) {
      if (++attempts < 3) throw new Error('connection lost')
      listed.delete(launchId)
    },
  })
  const { exited } = await launches.start(launchOptions('a', []))
  await launches.stop('a', 0)
  await exited
  announce()
  expect(attempts).toBe(3)
})

test('one that waits for a machine says why, and has no address', async () => {
  const { launches, put } = await clusterWith({
    start: async ({ launchId }) => put(launchId, { state: 'pending', reason: 'All cards are in use.', endpoint: null }),
  })
  const launched = await launches.start(launchOptions('a', []))
  expect([launched.waits(), launched.endpoint()]).toEqual(['All cards are in use.', undefined])
  put('a')
  await expect.poll(() => launched.waits()).toBeNull()
  expect(launched.endpoint()).toMatchObject({ origin: 'http://node:1' })
})

test('another generation is another process: the engine has ended, and what runs is stopped', async () => {
  const { launches, put, calls } = await clusterWith()
  const { exited } = await launches.start(launchOptions('a', []))
  put('a', { endpoint: { origin: 'http://node:2', generation: 2 } })
  expect(await exited).toMatchObject({ status: 'restarted' })
  await expect.poll(() => calls.stop).toEqual(['a'])
})

test('output goes on where it was after a connection that broke', async () => {
  const text = Buffer.from('one\ntwo\nthree\n')
  const asked: number[] = []
  const { launches } = await clusterWith({
    async *logs(_launchId, from) {
      asked.push(from)
      yield { at: from, bytes: text.subarray(from, from + 5) }
      if (from + 5 < text.length) throw new Error('connection lost')
    },
  })
  await launches.start(launchOptions('a', []))
  await expect.poll(() => launches.logs('a')).toEqual(['one', 'two', 'three'])
  expect(asked).toEqual([0, 5, 10])
})
