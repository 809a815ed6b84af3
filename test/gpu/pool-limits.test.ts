import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { systemClock } from '../../gpu/clock.ts'
import { countMs } from '../../gpu/pool-use-count.ts'
import { cluster, fakePool } from './_fake-pool.ts'
import { chat, fake, fleetOf, send } from './_fleet.ts'
import { until } from './launcher/_launch.ts'

const hour = 3_600_000

test('at a limit of the month engines end after their requests, callers are told why, and the next month opens the pool', async () => {
  let shift = Date.UTC(2026, 10, 29) - Date.now()
  let count = () => {}
  const clock = {
    ...systemClock,
    epoch: () => Date.now() + shift,
    after(ms: number, run: () => void) {
      if (ms !== countMs) return systemClock.after(ms, run)
      count = run
      return () => {}
    },
  }
  const lab = await fakePool()
  const model = fake('m', [], { pools: ['lab'], memory: '60GiB', devices: 2 })
  const { fleet, dataDir } = await fleetOf([model], {
    pools: () => ({ lab: cluster({ monthly_card_hours_limit: 10, cost_per_hour: 2 }) }),
    openPoolLauncher: lab.open,
    clock,
  })
  await fleet.load(model)
  using lease = await fleet.lease(model, { waitMs: 30_000 })
  const running = send(lease, 'mode:stream,tokens=60,rate=100', { stream: true })
  await running.begun
  count()
  expect(fleet.snapshot().pools).toMatchObject([{ limitReached: null, monthlyCardHoursLimit: 10 }])
  shift += 5 * hour
  count()
  const [pool] = fleet.snapshot().pools
  expect(pool!.usedCardHours).toBeCloseTo(10, 1)
  expect(pool!.usedCost).toBeCloseTo(20, 1)
  expect(pool!.limitReached).toMatch(
    /^It has used 10(\.\d+)? of its 10 GPU hours of this month, and opens again on 2026-12-01/,
  )
  expect((await running.answer).text).toContain('[DONE]')
  lease[Symbol.dispose]()
  await until(() => fleet.snapshot().residents.length === 0)
  expect((await fleet.plan(model)).detail).toMatch(/^'m' waits for the pool 'lab': It has used 10/)
  await expect(fleet.lease(model, { waitMs: 50 })).rejects.toThrow(/the pool 'lab': It has used 10/)
  const file = JSON.parse(readFileSync(join(dataDir, 'pool-use.json'), 'utf8')) as Record<string, object>
  expect(file.lab).toMatchObject({ month: Date.UTC(2026, 10, 1), countedUntil: {} })

  const waiting = chat(fleet, model)
  shift += 48 * hour
  count()
  expect((await waiting).text).toContain('Hello')
  expect(fleet.snapshot().pools[0]!.usedCardHours).toBeLessThan(1)
})
