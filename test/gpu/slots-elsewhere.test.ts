import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { Model } from '../../core/models/model.ts'
import type { UsedSlots } from '../../core/models/used-slots.ts'
import { fake, fleetOf } from './_fleet.ts'
import { until } from './launcher/_launch.ts'

const address = 'http://127.0.0.1:9'
const remote = (of: object = {}) =>
  Model.parse({
    id: 'far',
    engine: 'remote',
    url: `${address}/v1`,
    concurrency: 2,
    tasks: ['std/chat-completion'],
    ...of,
  })
const used = (slots: number, addresses = [address]): UsedSlots =>
  new Map([['wkr_before', { modelId: 'far', addresses, slots }]])

test('slots that the server before uses on a remote model are given to nobody here, as many as it uses at the time', async () => {
  const model = remote()
  const { fleet } = await fleetOf([model], { usedElsewhere: used(2) })
  // A server that takes over next is told, too, before anything is requested here.
  expect(fleet.usedSlots()).toEqual(used(2))
  const leased = fleet.lease(model, { waitMs: 60_000 })
  await until(() => fleet.snapshot().residents[0]?.state === 'ready')
  const { engineId } = fleet.snapshot().residents[0]!
  expect(fleet.usedSlots()).toEqual(new Map([[engineId, { modelId: 'far', addresses: [address], slots: 2 }]]))
  expect(fleet.waiting('far')).toBe(1)
  fleet.usedElsewhere(used(1))
  const lease = await leased
  const second = fleet.lease(model, { waitMs: 60_000 })
  // A request that waited there has begun.
  fleet.usedElsewhere(used(2))
  lease.release()
  expect(fleet.waiting('far')).toBe(1)
  fleet.usedElsewhere(new Map())
  const third = await fleet.lease(model, { waitMs: 60_000 })
  for (const one of [third, await second]) one.release()
  expect(fleet.usedSlots()).toEqual(new Map())
})

test.each([
  ['another address', remote(), used(2, ['http://127.0.0.1:8'])],
  ['another model', remote(), new Map([['wkr_before', { modelId: 'near', addresses: [address], slots: 2 }]])],
])('slots of %s are not those of this one', async (_what, model, elsewhere) => {
  const { fleet } = await fleetOf([model], { usedElsewhere: elsewhere })
  for (const _slot of [1, 2]) (await fleet.lease(model, { waitMs: 60_000 })).release()
  expect(fleet.usedSlots()).toEqual(elsewhere)
})

test('they count on the next engine if the first did not start', async () => {
  let status = 503
  const server = createServer((_, res) => void res.writeHead(status).end()).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const model = remote({ url, health_path: '/health', load_timeout: '100ms' })
  const { fleet } = await fleetOf([model], { usedElsewhere: used(1, [url]) })
  await expect(fleet.load(model)).rejects.toThrow('no progress')
  status = 200
  await fleet.load(model)
  expect(fleet.snapshot().residents).toMatchObject([{ state: 'ready', leases: 1 }])
})

test('gateway processes learn that an engine has ended whose slots the server before uses too', async () => {
  const model = fake('far')
  const { fleet } = await fleetOf([model])
  await fleet.load(model)
  const { engineId, pid } = fleet.snapshot().residents[0]!
  fleet.usedElsewhere(new Map([[engineId, { modelId: 'far', addresses: [], slots: 1 }]]))
  const failed = Promise.withResolvers<string>()
  fleet.grants.onFailed(id => failed.resolve(id))
  expect(fleet.grants.take('far', 1)?.slots).toBe(1)
  process.kill(pid!, 'SIGKILL')
  expect(await failed.promise).toBe(engineId)
})

const changes: [what: string, change: object, stillCounts: boolean][] = [
  ['its settings', { env: { REGION: 'eu' } }, true],
  ['one of its addresses', { url: undefined, urls: [`${address}/v1`, 'http://127.0.0.1:8/v1'] }, true],
  ['its address', { url: 'http://127.0.0.1:8/v1' }, false],
]
test.each(changes)('after a change of %s a remote model has its slots once: %j, %j', async (_what, change, counts) => {
  const models = [remote()]
  const { fleet } = await fleetOf(models)
  const lease = () => fleet.lease(models[0]!, { waitMs: 60_000 })
  const before = [await lease(), await lease()]
  // Changed twice: its first engine counts on the second, and that on the third.
  for (const load_timeout of ['50s', '60s']) {
    models[0] = remote({ ...change, load_timeout })
    await fleet.reconfigured()
  }
  await until(() => {
    const ready = fleet.snapshot().residents.filter(({ state }) => state === 'ready')
    return ready.length === (counts ? 3 : 2)
  })
  const leased = lease()
  if (counts) {
    await until(() => fleet.waiting('far') === 1)
    const used = [...fleet.usedSlots().values()]
    expect(used.map(({ slots }) => slots)).toEqual([2])
    before[0]!.release()
  }
  const after = await leased
  const next = lease()
  if (counts) {
    expect(fleet.waiting('far')).toBe(1)
    before[1]!.release()
  }
  for (const one of [after, await next]) one.release()
  if (!counts) for (const one of before) one.release()
  expect(fleet.usedSlots()).toEqual(new Map())
})
