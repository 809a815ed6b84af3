import { expect, onTestFinished, test } from 'vitest'
import { Model } from '../../core/models/model.ts'
import type { UsedSlots } from '../../core/models/used-slots.ts'
import { openFleet } from '../../gpu/fleet.ts'
import { chat, cpu, fake, statsOf } from './_fleet.ts'
import { leasing } from './_leasing.ts'
import {
  fakeEngine,
  keeperOf,
  keptLog,
  noSandbox,
  survivors,
  temporary,
  until,
  wrappersHere,
} from './launcher/_launch.ts'

/** A fleet whose engines outlive it. `leave` ends it as a server does that is killed: the keeper has the engines. */
async function keptFleet(dataDir: string, models: Model[], boot = 'boot-1', usedElsewhere?: UsedSlots) {
  const log = keptLog()
  const keeper = await keeperOf(dataDir, 20_000)
  const fleet = await openFleet({
    models: () => models,
    dataDir,
    bootId: boot,
    usedElsewhere,
    log,
    keeper,
    limits: { engine_backoff: 100, order_bound: 1, cancel_grace: 500 },
    environment: process.env,
    machine: {
      wrapper: wrappersHere[0]!,
      sandbox: noSandbox,
      devices: { cards: async () => ({ devices: [], reason: null, broken: false }), processes: async () => null, cpu },
    },
  })
  onTestFinished(() => fleet.close(0))
  return { fleet: leasing(fleet, models), grants: fleet.grants, log, leave: () => fleet.leave() }
}

const states = (fleet: { snapshot(): { residents: { modelId: string; state: string }[] } }) =>
  fleet.snapshot().residents.map(({ modelId, state }) => `${modelId} ${state}`)

test('the next server takes a ready engine over: the same process, booked, without a load', async () => {
  const dataDir = temporary()
  const model = fake('a')
  const first = await keptFleet(dataDir, [model])
  expect((await chat(first.fleet, model)).failure).toBeUndefined()
  const before = first.fleet.snapshot().residents[0]!
  await first.leave()

  const next = await keptFleet(dataDir, [model], 'boot-2')
  const booked = next.fleet.snapshot().residents[0]!
  expect(booked).toMatchObject({ engineId: before.engineId, bytes: before.bytes, devices: ['cpu'] })
  // A request that comes at once waits for this engine.
  expect((await chat(next.fleet, model)).failure).toBeUndefined()
  await until(() => next.fleet.snapshot().residents[0]!.pid === before.pid)
  const { residents, models } = next.fleet.snapshot()
  expect(residents).toMatchObject([{ engineId: before.engineId, state: 'ready', pid: before.pid }])
  expect(models.a).toMatchObject({ engineStarts: 0, engineFailures: 0 })
  expect(next.log.lines).toContainEqual(expect.stringContaining("Took over the engine of 'a'"))
  // The engine has counted the requests of both.
  expect(await statsOf(next.fleet, model)).toMatchObject({ requests: 2 })
  const { engineId } = before
  await next.fleet.unload('a')
  expect(await survivors(`${engineId}-1`)).toEqual([])
})

test('an engine is taken over once more', async () => {
  const dataDir = temporary()
  const model = fake('a')
  const first = await keptFleet(dataDir, [model])
  await first.fleet.load(model)
  const { engineId } = first.fleet.snapshot().residents[0]!
  await first.leave()
  for (const boot of ['boot-2', 'boot-3']) {
    const next = await keptFleet(dataDir, [model], boot)
    await until(() => states(next.fleet).join() === 'a ready')
    expect(next.fleet.snapshot().residents[0]!.engineId).toBe(engineId)
    expect(next.fleet.snapshot().models.a).toMatchObject({ engineStarts: 0 })
    await next.leave()
  }
})

const changes: [what: string, after: Model[], reason: RegExp][] = [
  ['its command has changed', [fake('a', ['--rate', '7'])], /started differently now/],
  ['its configuration has changed', [fake('a', [], { context_length: 1_024 })], /started differently now/],
  ['its model is gone', [fake('b')], /not offered any more/],
  ['its model is disabled', [fake('a', [], { enabled: false })], /not offered any more/],
]
test.each(changes)('an engine ends before anything is loaded where %s', async (_what, after, reason) => {
  const dataDir = temporary()
  const model = fake('a')
  const first = await keptFleet(dataDir, [model])
  await first.fleet.load(model)
  const { engineId } = first.fleet.snapshot().residents[0]!
  await first.leave()

  const next = await keptFleet(dataDir, after, 'boot-2')
  expect(await survivors(`${engineId}-1`)).toEqual([])
  expect(next.fleet.snapshot().residents).toEqual([])
  expect(next.log.lines).toContainEqual(expect.stringMatching(reason))
  if (after[0]!.enabled) expect((await chat(next.fleet, after[0]!)).failure).toBeUndefined()
})

test.each(['before', 'after'])(
  'an engine that is to change ends when its requests have, %s it was asked',
  async when => {
    const dataDir = temporary()
    const first = await keptFleet(dataDir, [fake('a')])
    await first.fleet.load(fake('a'))
    const { engineId } = first.fleet.snapshot().residents[0]!
    await first.leave()

    const changed = fake('a', ['--rate', '7'])
    const next = await keptFleet(
      dataDir,
      [changed],
      'boot-2',
      new Map([[engineId, { modelId: 'a', addresses: [], slots: 1 }]]),
    )
    expect(await survivors(`${engineId}-1`)).not.toEqual([])
    if (when === 'after') await until(() => states(next.fleet).includes('a ready'))
    next.fleet.usedElsewhere(new Map())
    await until(async () => (await survivors(`${engineId}-1`)).length === 0)
    expect((await chat(next.fleet, changed)).failure).toBeUndefined()
  },
)

test.each([
  ['at once where memory is free', '4GiB'],
  ['when that has ended where it is not', '5GiB'],
])('requests that wait for an engine which is to change get the new one, %s', async (_when, memory) => {
  const dataDir = temporary()
  const first = await keptFleet(dataDir, [fake('a', [], { memory })])
  await first.fleet.load(fake('a', [], { memory }))
  const { engineId } = first.fleet.snapshot().residents[0]!
  await first.leave()

  const changed = fake('a', ['--rate', '7'], { memory })
  const slots = { modelId: 'a', addresses: [], slots: 1 }
  const next = await keptFleet(dataDir, [changed], 'boot-2', new Map([[engineId, slots]]))
  const leased = next.fleet.lease(changed, { waitMs: 60_000 })
  if (memory === '5GiB') {
    await until(() => states(next.fleet).join() === 'a ready')
    expect(next.fleet.waiting('a')).toBe(1)
    next.fleet.usedElsewhere(new Map())
  }
  using lease = await leased
  expect(lease.engineId).not.toBe(engineId)
  next.fleet.usedElsewhere(new Map())
  await until(() => states(next.fleet).join() === 'a ready')
  expect(await survivors(`${engineId}-1`)).toEqual([])
})

const otherVersions: [what: string, about: object, note: object][] = [
  ['note', about(), { start: {}, running: {} }],
  ['note of the same shape', about(), { version: 1, engine: 'custom', hash: '', start: {}, running: {} }],
  ['launch', { engine: 'wkr_old' }, { version: 1 }],
]
test.each(otherVersions)('the %s of another version ends the engine, and not the server', async (_what, said, note) => {
  const dataDir = temporary()
  const launchId = `wkr_old${process.pid}-1`
  const keeper = await keeperOf(dataDir, 20_000)
  const env = { INFER_LAUNCH_ID: launchId }
  await keeper.start(launchId, { file: '/bin/sleep', args: ['60'], env, cwd: '/' }, said)
  keeper.note(launchId, note)
  await keeper.release()
  const next = await keptFleet(dataDir, [fake('a')], 'boot-2')
  expect(await survivors(launchId)).toEqual([])
  expect(next.log.lines).toContainEqual(expect.stringContaining('It was started by another version.'))
})

function about(): object {
  const wrapper = { name: 'plain', signals: 'group', depth: 0 }
  const endpoint = { origin: 'http://engine', socketPath: '/nowhere/s' }
  return { engineId: 'wkr_old', modelId: 'a', endpoint, port: null, wrapper, level: null, secrets: [] }
}

test('a change that concerns the server alone ends no engine', async () => {
  const dataDir = temporary()
  const model = fake('a')
  const first = await keptFleet(dataDir, [model])
  await first.fleet.load(model)
  const { engineId } = first.fleet.snapshot().residents[0]!
  await first.leave()
  const next = await keptFleet(dataDir, [fake('a', [], { idle_ttl: '300ms', description: 'Other words.' })], 'boot-2')
  await until(() => states(next.fleet).join() === 'a ready')
  expect(next.fleet.snapshot().residents[0]!.engineId).toBe(engineId)
  expect(next.fleet.snapshot().models.a).toMatchObject({ engineStarts: 0 })
  // Its new idle time counts.
  await until(() => next.fleet.snapshot().residents.length === 0)
})

test('an engine that was still loading, and one that does not answer any more, are ended and loaded again', async () => {
  const dataDir = temporary()
  const [loads, stuck] = [fake('loads', ['--hang']), fake('stuck')]
  const first = await keptFleet(dataDir, [loads, stuck])
  void first.fleet.load(loads).catch(() => {})
  await first.fleet.load(stuck)
  await until(() => states(first.fleet).length === 2)
  const { residents } = first.fleet.snapshot()
  for (const { modelId, pid } of residents) if (modelId === 'stuck') process.kill(pid!, 'SIGSTOP')
  await first.leave()

  const next = await keptFleet(dataDir, [fake('loads'), stuck], 'boot-2')
  expect(next.log.lines).toContainEqual(expect.stringMatching(/engine of 'loads'.*It was not ready/))
  expect((await chat(next.fleet, stuck)).failure).toBeUndefined()
  expect(next.log.lines).toContainEqual(expect.stringContaining('An engine could not be taken over'))
  expect(next.fleet.snapshot().models.stuck).toMatchObject({ engineStarts: 1, engineFailures: 0 })
  for (const { engineId } of residents) expect(await survivors(`${engineId}-1`)).toEqual([])
})

test('no more engines of a model are taken over than it may have', async () => {
  const dataDir = temporary()
  const two = fake('a', [], { concurrency: 1, memory: '1GiB', replicas: { min: 2, max: 2 } })
  const first = await keptFleet(dataDir, [two])
  await until(() => states(first.fleet).join() === 'a ready,a ready')
  await first.leave()
  const next = await keptFleet(dataDir, [{ ...two, replicas: { min: 0, max: 1 } }], 'boot-2')
  await until(() => states(next.fleet).join() === 'a ready')
  expect(next.log.lines).toContainEqual(expect.stringContaining('fewer engines now'))
})

test('an engine with a port is taken over, and its port is given to no other', async () => {
  const dataDir = temporary()
  const model = Model.parse({
    ...fake('a'),
    command: [process.execPath, fakeEngine, '--port', '{port}', '--id', '{id}'],
  })
  const first = await keptFleet(dataDir, [model])
  await first.fleet.load(model)
  await first.leave()
  const next = await keptFleet(dataDir, [model], 'boot-2')
  expect((await chat(next.fleet, model)).failure).toBeUndefined()
  expect(next.fleet.snapshot().models.a).toMatchObject({ engineStarts: 0 })
})
