import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { Failure } from '../../core/failure.ts'
import type { EngineFault } from '../../core/models/slot-grants.ts'
import { openGrantedEngines } from '../../gpu/granted-engines.ts'
import { fake, send } from './_fleet.ts'
import { keptLog } from './launcher/_launch.ts'

test('a request of a gateway process that finds nobody has control look, and is not charged if the engine cannot be reached', async () => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  const engine = {
    engineId: 'wkr_1',
    modelId: 'far',
    endpoint: { origin: `http://127.0.0.1:${port}` },
    headers: [],
    devices: [],
    slots: 2,
    isOwnProcess: true,
    isChecked: true,
  }
  const asked = Promise.withResolvers<EngineFault>()
  const returned: number[] = []
  const engines = openGrantedEngines({
    find: id => fake(id),
    returned: (_, slots) => void returned.push(slots),
    report: (_, fault) => asked.resolve(fault),
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
