import { describe, expect, test } from 'vitest'
import { type LimitedCaller, openLimiter } from '../../../core/accounts/limiter.ts'
import { limitedCaller } from '../accounts/_caller.ts'
import { openLoad } from './_front-load.ts'
import { openProcesses, type Processes } from './_fronts.ts'

/** Callers of a few organizations, with and without limits of all kinds, rotated tokens and tokens that tokens created. */
function callersOf({ random }: Processes): LimitedCaller[] {
  const some = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)]!
  return Array.from({ length: 4 }, (_, index) => {
    const limits = {
      jobsPerMinute: some([0, 300, 3_000, 20_000]),
      concurrentRequests: some([0, 10, 60, 200]),
      tokensPerMinute: some([0, 0, 100_000, 2_000_000]),
      monthlySpendLimit: some([null, 60_000, 1_000_000]),
    }
    const organizationId = `org_${index}`
    const own = { jobsPerMinute: some([null, 600, 6_000]), concurrentRequests: some([null, 30]) }
    const parent = { jobsPerMinute: some([null, 2_000]), monthlySpendLimit: some([null, 30_000]) }
    const parents: [string, typeof parent][] = [[`parent_${index}`, parent]]
    return [
      limitedCaller(limits, own, { organizationId, tokenId: `tok_${index}`, originId: `origin_${index}` }),
      limitedCaller(limits, own, { organizationId, tokenId: `new_${index}`, originId: `origin_${index}` }),
      limitedCaller(limits, {}, { organizationId, tokenId: `child_${index}`, parents }),
    ]
  }).flat()
}

/** Sends random requests of the callers in bursts and quiet times until the end. */
function sendRandomly(
  processes: Processes,
  load: ReturnType<typeof openLoad>,
  callers: readonly LimitedCaller[],
  { untilMs, slack }: { untilMs: number; slack: number },
): void {
  const { random, clock, after, fronts } = processes
  const next = () => {
    if (clock() >= untilMs) return
    const ids = [...fronts.keys()]
    const burst = random() < 0.02 ? 40 : 1
    const caller = callers[Math.floor(random() ** 2 * callers.length)]!
    for (let sent = 0; sent < burst; sent++) {
      const amount = random() < 0.5 ? 0 : Math.ceil(random() * 200)
      const work = { caller, amount, lastsMs: random() * 400, tokens: Math.floor(random() * 200) }
      load.send(ids[Math.floor(random() * ids.length)]!, work, slack)
    }
    // Quiet for five seconds of each twenty.
    after(clock() % 20_000 > 15_000 ? 300 : random() * 20, next)
  }
  after(0, next)
}

/** Everything has come back: the limits are full but for what was spent. */
async function expectAllBack(processes: Processes, load: ReturnType<typeof openLoad>, untilMs: number) {
  await processes.run(untilMs)
  expect(load.running.size).toBe(0)
  expect(processes.credits.size()).toBe(0)
  for (const [id, { limits, spent }] of load.truths) {
    if (limits.jobs > 0) expect(processes.limiter.level(id, 'jobs', limits.jobs)).toBe(limits.jobs)
    expect(processes.limiter.heldOpen(id)).toBe(0)
    if (limits.spend !== null) expect(processes.spend.left(id, limits.spend)).toBe(limits.spend - spent)
  }
}

describe('random callers, limits and arrivals', () => {
  test.each([1, 2, 3, 4, 5, 6])('all processes admit what one would (%i)', async seed => {
    const processes = await openProcesses({ seed, fronts: 1 + (seed % 5), delayMs: 10 })
    const load = openLoad(processes)
    sendRandomly(processes, load, callersOf(processes), { untilMs: 40_000, slack: 0.01 })
    await processes.run(45_000)
    expect(load.violations).toEqual([])
    expect(load.count.wrong).toEqual([])
    expect(load.count.local).toBeGreaterThan(500)
    expect(load.count.refused).toBeGreaterThan(20)
    await expectAllBack(processes, load, 200_000)
  })

  test.each([11, 12, 13, 14])('fronts that end and messages that get lost admit nothing more (%i)', async seed => {
    const processes = await openProcesses({ seed, fronts: 4, delayMs: 40, loss: 0.02 })
    const load = openLoad(processes)
    sendRandomly(processes, load, callersOf(processes), { untilMs: 40_000, slack: 1 })
    for (let death = 0; death < 12; death++)
      processes.at(1_000 + processes.random() * 38_000, () => {
        const ids = [...processes.fronts.keys()]
        load.kill(ids[Math.floor(processes.random() * ids.length)]!)
        processes.join(`later_${death}`)
      })
    await processes.run(45_000)
    expect(load.violations).toEqual([])
    expect(load.count.local).toBeGreaterThan(200)
    await expectAllBack(processes, load, 300_000)
  })
})

const quick = { amount: 0, lastsMs: 20, tokens: 0 }

describe('near a limit', () => {
  test.each([600, 6_000])('requests at three times %i a minute get the answers of one process', async perMinute => {
    const processes = await openProcesses({ seed: perMinute })
    const load = openLoad(processes)
    const caller = limitedCaller({ jobsPerMinute: perMinute })
    const one = openLimiter(processes.clock)
    let admitted = 0
    const apart = 20_000 / perMinute
    for (let index = 0; index < perMinute; index++)
      processes.at(index * apart, () => {
        if (!one.enter(caller, 'jobs').refused) admitted++
        load.send(`front_${index % 4}`, { caller, ...quick }, 1 / perMinute)
      })
    await processes.run(25_000)
    const { local, forwarded, refused, wrong } = load.count
    expect(wrong).toEqual([])
    expect(load.violations).toEqual([])
    expect(local).toBeGreaterThan(perMinute / 20)
    // A request that is forwarded is decided a little later.
    expect(Math.abs(local + forwarded - refused - admitted)).toBeLessThanOrEqual(1)
  })

  test('every request is decided by control, and credits are granted again when there is plenty', async () => {
    const processes = await openProcesses()
    const load = openLoad(processes)
    const caller = limitedCaller({ jobsPerMinute: 600 })
    const sendAll = (count: number, from: number, everyMs: number) => {
      for (let index = 0; index < count; index++)
        processes.at(from + index * everyMs, () => load.send('front_0', { caller, ...quick }))
    }
    sendAll(800, 0, 5)
    await processes.run(4_050)
    const { local, refused } = load.count
    expect(local).toBeGreaterThan(0)
    sendAll(30, 4_100, 20)
    await processes.run(5_000)
    expect(load.count).toMatchObject({ local, refused: expect.any(Number) })
    expect(load.count.refused).toBeGreaterThan(refused)
    // After a minute the bucket is full.
    sendAll(60, 65_000, 50)
    await processes.run(70_000)
    expect(load.count.local).toBeGreaterThan(local + 50)
  })
})

describe('a steady load at half of the limits', () => {
  test.each([
    ['100 organizations', 100, 2_400, 20_000],
    ['one organization', 1, 24_000, 20_000],
  ])('of %s costs few messages even where no other message takes them along', async (_, count, perMinute, lastsMs) => {
    const processes = await openProcesses({ alone: true })
    const load = openLoad(processes)
    const callers = Array.from({ length: count }, (_, index) =>
      limitedCaller(
        { jobsPerMinute: perMinute, concurrentRequests: 400 },
        {},
        { organizationId: `org_${index}`, tokenId: `tok_${index}` },
      ),
    )
    const requests = (count * perMinute * lastsMs) / 120_000
    for (let index = 0; index < requests; index++)
      processes.at((index * lastsMs) / requests, () =>
        load.send(`front_${Math.floor(processes.random() * 4)}`, { caller: callers[index % count]!, ...quick }),
      )
    await processes.run(lastsMs)
    const { local, forwarded } = load.count
    const { toFronts, toControl } = processes.messages
    const perThousand = ((toFronts + toControl) * 1_000) / requests
    process.stdout.write(
      `credits: ${perThousand.toFixed(1)} messages per 1,000 requests, ${forwarded} of ${requests} forwarded\n`,
    )
    expect(load.violations).toEqual([])
    expect(perThousand).toBeLessThanOrEqual(10)
    expect(forwarded / (local + forwarded)).toBeLessThan(0.05)
  })

  test('of callers without limits costs none', async () => {
    const processes = await openProcesses()
    const load = openLoad(processes)
    for (let index = 0; index < 500; index++)
      processes.at(index, () => load.send('front_1', { caller: limitedCaller(), ...quick, amount: 5 }))
    await processes.run(20_000)
    expect(load.count).toMatchObject({ local: 500, forwarded: 0 })
    expect(processes.messages).toEqual({ toFronts: 0, toControl: 0 })
  })
})
