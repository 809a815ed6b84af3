import { expect, test } from 'vitest'
import type { Model } from '../../core/models/model.ts'
import type { Pools } from '../../core/models/pools.ts'
import type { Launcher } from '../../gpu/launcher/launcher.ts'
import type { OpenPoolLauncher } from '../../gpu/pool-launches.ts'
import { cluster, fakePool } from './_fake-pool.ts'
import { chat, fake, fleetOf, send } from './_fleet.ts'
import { until } from './launcher/_launch.ts'

const inPools = (id: string, ...pools: string[]) => fake(id, [], { pools, memory: '60GiB' })

/** A fleet whose models and pools the test changes, as a saved infer.yaml does. */
async function withFile(before: { models: Model[]; pools: Pools }, launcher: Partial<Launcher> = {}) {
  const { models } = before
  let { pools } = before
  const lab = await fakePool()
  const opens: string[] = []
  const openPoolLauncher: OpenPoolLauncher = async options => {
    opens.push(options.pool)
    return { ...(await lab.open()), ...launcher }
  }
  const opened = await fleetOf(models, { pools: () => pools, openPoolLauncher })
  const engines = () => opened.fleet.snapshot().residents
  const save = (next: Partial<typeof before>) => {
    if (next.models) models.splice(0, models.length, ...next.models)
    if (next.pools) ({ pools } = next)
    return opened.fleet.reconfigured()
  }
  return { ...opened, lab, opens, engines, save }
}

test('a pool that is added while the server runs is used at once', async () => {
  const local = inPools('m', 'local')
  const { fleet, opens, save } = await withFile({ models: [local], pools: {} })
  const moved = inPools('m', 'lab')
  await save({ models: [moved], pools: { lab: cluster() } })
  expect((await chat(fleet, moved)).text).toContain('Hello')
  expect(opens).toEqual(['lab'])
  expect(fleet.snapshot().pools).toMatchObject([{ name: 'lab', engines: 1, unknown: null }])
})

test('a model with an engine here moves to a pool that is added in the same change and answers later', async () => {
  const local = fake('m', [], { pools: ['local'] })
  const { fleet, lab, opens, engines, save } = await withFile({ models: [local], pools: {} })
  await fleet.load(local)
  lab.state.fault = 'It is not connected yet.'
  const moved = inPools('m', 'lab')
  await save({ models: [moved], pools: { lab: cluster() } })
  const answer = chat(fleet, moved)
  await until(() => opens.length === 1)
  lab.state.fault = null
  lab.changed()
  expect((await answer).text).toContain('Hello')
  expect(engines()).toMatchObject([{ pool: 'lab' }])
})

test('engines of a removed pool end after their requests, and then it is closed', async () => {
  const model = inPools('m', 'lab')
  const { fleet, engines, save, log } = await withFile({ models: [model], pools: { lab: cluster() } })
  await fleet.load(model)
  using lease = await fleet.lease(model, { waitMs: 30_000 })
  const running = send(lease, 'mode:stream,tokens=60,rate=100', { stream: true })
  await running.begun
  await save({ models: [inPools('m', 'local')], pools: {} })
  expect(engines()).toMatchObject([{ pool: 'lab' }])
  expect(fleet.snapshot().pools).toMatchObject([
    { name: 'lab', unknown: expect.stringMatching(/engines end first/) as string },
  ])
  expect((await running.answer).text).toContain('[DONE]')
  lease[Symbol.dispose]()
  await until(() => fleet.snapshot().pools.length === 0)
  expect(engines()).toEqual([])
  expect(log.lines.some(line => line.includes('A pool is closed {"pool":"lab"}'))).toBe(true)
})

test('a pool that is reached in another way is drained and opened again; limits change at once', async () => {
  const model = inPools('m', 'lab')
  const { fleet, opens, engines, save } = await withFile({ models: [model], pools: { lab: cluster() } })
  await fleet.load(model)
  const [engine] = engines()
  await save({ pools: { lab: cluster({ max_cards: 3, cost_per_hour: 2 }) } })
  expect(fleet.snapshot().pools).toMatchObject([{ maxCards: 3, costPerHour: 2, engines: 1, unknown: null }])
  expect(engines()).toMatchObject([{ engineId: engine!.engineId, state: 'ready' }])
  expect(opens).toEqual(['lab'])

  await save({ pools: { lab: cluster({ partition: 'other' }) } })
  await until(() => opens.length === 2)
  expect(engines()).toEqual([])
  expect(fleet.loads('m')).toMatchObject([{ state: 'ended', reason: 'its pool was changed or removed' }])
  expect((await chat(fleet, model)).text).toContain('Hello')
  expect(engines()[0]?.engineId).not.toBe(engine!.engineId)
})

test('a change that is taken back keeps the engines that still run', async () => {
  const model = inPools('m', 'lab')
  const { fleet, opens, engines, save } = await withFile({ models: [model], pools: { lab: cluster() } })
  const lease = await fleet.lease(model, { waitMs: 30_000 })
  const [engine] = engines()
  await save({ pools: { lab: cluster({ partition: 'other' }) } })
  await save({ pools: { lab: cluster() } })
  lease[Symbol.dispose]()
  expect((await chat(fleet, model)).text).toContain('Hello')
  expect(engines()).toMatchObject([{ engineId: engine!.engineId, state: 'ready' }])
  expect(opens).toEqual(['lab'])
})

test('a pool whose launcher fails when it is closed is opened again all the same', async () => {
  const model = inPools('m', 'lab')
  let closes = 0
  const close = async () => {
    if (closes++ === 0) throw new Error('scancel is missing')
  }
  const { fleet, opens, save, log } = await withFile({ models: [model], pools: { lab: cluster() } }, { close })
  await save({ pools: { lab: cluster({ partition: 'other' }) } })
  await until(() => opens.length === 2)
  expect((await chat(fleet, model)).text).toContain('Hello')
  expect(log.lines.some(line => line.includes('could not be closed in order'))).toBe(true)
})

test('a removed pool that does not answer blocks nothing, and what is left there is said', async () => {
  const model = inPools('m', 'lab')
  const stop = () => Promise.reject(new Error('ssh: connect to host box: No route to host'))
  const file = { models: [model], pools: { lab: cluster() } }
  const { fleet, lab, opens, engines, save, log } = await withFile(file, { stop })
  await fleet.load(model)
  const [engine] = engines()
  lab.state.fault = 'The machine cannot be reached: No route to host.'
  const moved = fake('m', [], { pools: ['local'] })
  await save({ models: [moved], pools: {} })
  expect((await chat(fleet, moved)).text).toContain('Hello')
  await until(() => fleet.snapshot().pools.length === 0 && engines().length === 1)
  expect(engines()).toMatchObject([{ modelId: 'm', state: 'ready' }])
  expect(engines()[0]).not.toHaveProperty('pool')
  const said = log.lines.find(line =>
    line.includes('A removed pool does not answer, so its engines could not be ended'),
  )
  expect(said).toContain(engine!.engineId)
  expect(said).toContain('15m')
  // The same name can be used again at once, for another machine.
  await save({ pools: { lab: cluster({ partition: 'other' }) } })
  expect(opens).toEqual(['lab', 'lab'])
  lab.state.fault = null
})
