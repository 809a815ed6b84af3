import { expect, onTestFinished, test } from 'vitest'
import { Failure } from '../../core/failure.ts'
import type { EngineFault } from '../../core/models/slot-grants.ts'
import { openGrantedEngines } from '../../gpu/granted-engines.ts'
import { freePort } from '../../gpu/launcher/address.ts'
import { fake, fleetOf, send } from './_fleet.ts'
import { keptLog } from './launcher/_launch.ts'

test('a request of a gateway process that finds nobody has control look, and is not charged if the engine cannot be reached', async () => {
  const engine = {
    engineId: 'wkr_1',
    modelId: 'far',
    endpoint: { origin: `http://127.0.0.1:${await freePort()}` },
    headers: [],
    devices: [],
    slots: 2,
    isOwnProcess: true,
    sharesFolders: true,
    isChecked: true,
  }
  const asked = Promise.withResolvers<EngineFault>()
  const returned: number[] = []
  const engines = openGrantedEngines({
    find: id => fake(id),
    returned: (_, slots) => void returned.push(slots),
    report: (_, fault) => asked.resolve(fault),
    progressed() {},
    lacking() {},
    log: keptLog(),
  })
  engines.granted(engine, 2)
  const lease = engines.take('far')!
  const { answer } = send(lease, 'Hello')
  expect(await asked.promise).toBe('unreached')
  engines.unreachable('wkr_1', () => new Failure('worker_error', 'It cannot be reached.'))
  expect((await answer).failure).toMatchObject({ message: 'It cannot be reached.', unsent: true })
  expect(engines.take('far')).toBeUndefined()
  lease.release()
  await expect.poll(() => returned).toEqual([1, 1])

  engines.granted(engine, 1)
  expect(engines.take('far')).toBeDefined()
  engines.ended('wkr_1', () => new Failure('worker_error', 'It has ended.'))
  expect(engines.take('far')).toBeUndefined()
})

test('an engine that is silent in one gateway process and sends in another is not stuck, and one silent in both is', async () => {
  const model = fake('one', [], { no_progress: '1s' })
  const { fleet } = await fleetOf([model])
  await fleet.load(model)
  const { grants } = fleet
  const openFront = () => {
    const engines = openGrantedEngines({
      find: () => model,
      returned: (...slots) => grants.giveBack(...slots),
      report: (...fault) => grants.report(...fault),
      progressed: (...ago) => grants.progressed(...ago),
      lacking() {},
      log: keptLog(),
    })
    const timer = setInterval(() => engines.look(), 50)
    onTestFinished(() => clearInterval(timer))
    return engines
  }
  const takeIn = (engines: ReturnType<typeof openFront>) => {
    const { engine, slots } = grants.take('one', 0.5)!
    engines.granted(engine, slots)
    return engines.take('one')!
  }
  const [silent, busy] = [openFront(), openFront()]
  const [quiet, other] = [takeIn(silent), takeIn(busy)]
  const stuck = send(quiet, 'mode:silent').answer
  const streaming = send(other, 'mode:stream,tokens=60,rate=25', { stream: true }).answer
  expect((await stuck).failure?.message).toMatch(/no progress/)
  expect((await streaming).failure).toBeUndefined()
  expect(fleet.snapshot().models.one).toMatchObject({ engineStarts: 1, engineFailures: 0 })
  for (const lease of [quiet, other]) lease.release()

  // What is free in both comes back.
  await expect.poll(() => fleet.snapshot().residents[0]!.leases).toBe(0)
  using again = takeIn(silent)
  expect((await send(again, 'mode:silent').answer).failure?.message).toMatch(/no progress/)
  await expect.poll(() => fleet.snapshot().models.one).toMatchObject({ engineFailures: 1 })
})
