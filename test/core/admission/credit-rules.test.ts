import { expect, test } from 'vitest'
import type { LimitedCaller } from '../../../core/accounts/limiter.ts'
import { askControl } from '../../../core/admission/front-limits.ts'
import { spenderOf } from '../../../core/admission/spender.ts'
import { limitedCaller } from '../accounts/_caller.ts'
import { openProcesses, type Processes } from './_fronts.ts'

const frontOf = ({ fronts }: Processes, id = 'front_0') => fronts.get(id)!.limits
const isLocal = (processes: Processes, caller: LimitedCaller, id?: string) =>
  frontOf(processes, id).limiter.enter(caller, 'jobs').refused !== askControl

/** Two requests that the front cannot admit make it ask for a credit. */
async function granted(processes: Processes, caller: LimitedCaller, id?: string): Promise<void> {
  expect([isLocal(processes, caller, id), isLocal(processes, caller, id)]).toEqual([false, false])
  await processes.run(processes.clock() + 200)
}

const spender = (caller: LimitedCaller) =>
  spenderOf({ ...caller.token, organizationId: 'org_1' }, caller.limits.monthlySpendLimit)

test('a front admits what control has granted, and asks again once that is used', async () => {
  const processes = await openProcesses({ fronts: 1 })
  const caller = limitedCaller({ jobsPerMinute: 60, requestsPerMinute: 60 })
  await granted(processes, caller)
  expect(processes.limiter.level('org_1', 'jobs', 60)).toBe(45)
  expect(frontOf(processes).limiter.enter(caller, 'jobs')).toMatchObject({
    refused: undefined,
    organization: { allowed: true, limit: 60, remaining: 59 },
  })
  for (let sent = 1; sent < 15; sent++) expect(isLocal(processes, caller)).toBe(true)
  expect(isLocal(processes, caller)).toBe(false)
  // Another bucket is another limit.
  expect(frontOf(processes).limiter.enter(caller, 'api').refused).toBe(askControl)
})

test('a request of which a part is left is forwarded and undone: it counts nowhere else', async () => {
  const processes = await openProcesses({ fronts: 1 })
  const caller = limitedCaller({ jobsPerMinute: 60, concurrentRequests: 4 })
  await granted(processes, caller)
  for (let sent = 0; sent < 40; sent++) frontOf(processes).limiter.enter(caller, 'jobs').undo()
  expect(frontOf(processes).limiter.openRequests('org_1')).toBe(0)
  await processes.run(20_000)
  expect(processes.limiter.level('org_1', 'jobs', 60)).toBe(60)
  expect(processes.limiter.heldOpen('org_1')).toBe(0)
})

test('what nobody uses goes back after ten seconds', async () => {
  const processes = await openProcesses({ fronts: 2 })
  const caller = limitedCaller({ jobsPerMinute: 600, concurrentRequests: 10, tokensPerMinute: 1_000 })
  await granted(processes, caller)
  expect(processes.credits.size()).toBe(1)
  await processes.run(12_000)
  expect(processes.credits.size()).toBe(0)
  expect(frontOf(processes).size()).toBe(0)
  expect(processes.limiter.level('org_1', 'jobs', 600)).toBe(600)
})

test('one request now and then asks for no credit', async () => {
  const processes = await openProcesses({ fronts: 1 })
  const caller = limitedCaller({ jobsPerMinute: 600 })
  for (let sent = 0; sent < 5; sent++) {
    isLocal(processes, caller)
    await processes.run(processes.clock() + 11_000)
  }
  expect(processes.messages).toEqual({ toFronts: 0, toControl: 0 })
})

/** Counts a request in control; `refused` is undefined while it waits. */
function enterControl({ credits, limiter }: Processes, caller: LimitedCaller) {
  const entered: { refused: boolean | undefined } = { refused: undefined }
  const entry = credits.enter(caller, () => {
    entered.refused = limiter.enter(caller, 'jobs').refused !== undefined
  })
  return { entered, waits: entry instanceof Promise }
}

test('a request that lacks what fronts hold waits until it is back', async () => {
  const processes = await openProcesses({ fronts: 4 })
  const caller = limitedCaller({ concurrentRequests: 8 })
  await granted(processes, caller)
  for (let sent = 0; sent < 7; sent++) processes.limiter.enter(caller, 'jobs')
  expect(processes.limiter.enter(caller, 'jobs').refused?.facts).toMatchObject({ limit: 'concurrent_requests' })
  const { entered, waits } = enterControl(processes, caller)
  expect(waits).toBe(true)
  await processes.run(processes.clock() + 30)
  expect(entered.refused).toBe(false)
  expect(enterControl(processes, caller)).toEqual({ entered: { refused: true }, waits: false })
})

test('credits are recalled while control still has enough for requests', async () => {
  const processes = await openProcesses({ fronts: 1 })
  const caller = limitedCaller({ jobsPerMinute: 60 })
  await granted(processes, caller)
  for (let sent = 0; sent < 32; sent++) expect(enterControl(processes, caller).waits).toBe(false)
  expect(isLocal(processes, caller)).toBe(true)
  expect(enterControl(processes, caller).waits).toBe(false)
  await processes.run(processes.clock() + 100)
  expect(isLocal(processes, caller)).toBe(false)
  expect(processes.credits.size()).toBe(0)
})

test('a front that does not answer holds up a request for about a second, and the next not at all', async () => {
  const processes = await openProcesses({ fronts: 4 })
  const caller = limitedCaller({ concurrentRequests: 8 })
  await granted(processes, caller)
  for (let sent = 0; sent < 7; sent++) processes.limiter.enter(caller, 'jobs')
  // It neither gets messages nor sends any.
  processes.fronts.get('front_0')!.alive = false
  const { entered } = enterControl(processes, caller)
  await processes.run(processes.clock() + 900)
  expect(entered.refused).toBeUndefined()
  await processes.run(processes.clock() + 350)
  // The front may still have the request open that it was allowed.
  expect(entered.refused).toBe(true)
  expect(enterControl(processes, caller)).toEqual({ entered: { refused: true }, waits: false })
  processes.credits.gone('front_0')
  expect(enterControl(processes, caller)).toEqual({ entered: { refused: false }, waits: false })
})

test('limits that change apply at once: the front asks, and what it held goes back', async () => {
  const processes = await openProcesses({ fronts: 1 })
  await granted(processes, limitedCaller({ jobsPerMinute: 600 }))
  const changed = limitedCaller({ jobsPerMinute: 60 })
  await granted(processes, changed)
  expect(isLocal(processes, changed)).toBe(true)
  await granted(processes, limitedCaller({ jobsPerMinute: 61 }))
  expect(isLocal(processes, changed)).toBe(false)
  await processes.run(2_000)
  // Control has the new limits first: a request waits until the old credit is back.
  const strict = limitedCaller({ jobsPerMinute: 10 })
  const sent = Array.from({ length: 12 }, () => enterControl(processes, strict))
  await processes.run(processes.clock() + 100)
  expect(sent.filter(({ entered }) => entered.refused === false)).toHaveLength(10)
})

test('what a front used before its message was lost does not come back when it no longer knows the credit', async () => {
  const processes = await openProcesses({ fronts: 1 })
  const caller = limitedCaller({ jobsPerMinute: 60 })
  await granted(processes, caller)
  const front = frontOf(processes)
  // From here on nothing arrives.
  processes.fronts.get('front_0')!.alive = false
  while (isLocal(processes, caller)) expect(front.size()).toBe(1)
  for (let second = 0; second < 12; second++) {
    await processes.run(processes.clock() + 1_000)
    front.pending(true)
  }
  expect(front.size()).toBe(0)
  for (let sent = 0; sent < 35; sent++) enterControl(processes, caller)
  front.apply(processes.credits.pending('front_0')!)
  const left = processes.limiter.level('org_1', 'jobs', 60)
  processes.credits.apply('front_0', front.pending(false)!)
  expect(processes.limiter.level('org_1', 'jobs', 60)).toBe(left)
})

test('a rotated token draws from the credit of the token before it, and tokens of one parent share one', async () => {
  const processes = await openProcesses({ fronts: 1 })
  const own = { jobsPerMinute: 60 }
  const [before, after] = ['tok_1', 'tok_2'].map(tokenId => limitedCaller({}, own, { tokenId, originId: 'tok_1' }))
  const child = limitedCaller({}, {}, { tokenId: 'tok_3', parents: [['tok_1', own]] })
  await granted(processes, before!)
  const sent = Array.from({ length: 18 }, (_, at) => isLocal(processes, [before!, after!, child][at % 3]!))
  expect(sent.filter(Boolean)).toHaveLength(15)
})

test('tokens of models are admitted while some of the credit is left, and a long answer ends it', async () => {
  const processes = await openProcesses({ fronts: 1 })
  const caller = limitedCaller({ tokensPerMinute: 1_000 })
  await granted(processes, caller)
  const { tokenLimiter } = frontOf(processes)
  tokenLimiter.admit(caller)
  expect(tokenLimiter.look(caller).organization).toMatchObject({ limit: 1_000, remaining: 1_000 })
  tokenLimiter.used(caller.tokenId, 400)
  processes.tokenLimiter.admit(caller)
  processes.tokenLimiter.used(caller.tokenId, 400)
  expect(tokenLimiter.look(caller).organization).toMatchObject({ remaining: 600 })
  expect(() => tokenLimiter.admit(caller)).toThrow(askControl)
  await processes.run(processes.clock() + 200)
  tokenLimiter.admit(caller)
  // Work that control runs uses the rest: the credit is recalled.
  processes.tokenLimiter.used(caller.tokenId, 500)
  enterControl(processes, caller)
  await processes.run(processes.clock() + 100)
  expect(() => tokenLimiter.admit(caller)).toThrow(askControl)
})

test('calls of a front hold a part of the spend limit, and their costs and rests come back', async () => {
  const processes = await openProcesses({ fronts: 1 })
  const caller = limitedCaller({ monthlySpendLimit: 1_000 }, { monthlySpendLimit: 2_000 })
  const limits = frontOf(processes)
  const hold = (id: string, amount: number) => limits.spend.hold(id, spender(caller), amount)
  for (const _ of [1, 2]) {
    expect(limits.limiter.enter(caller, 'jobs').refused).toBeUndefined()
    expect(() => hold('call_1', 10)).toThrow(askControl)
  }
  await processes.run(200)
  expect(processes.spend.left('org_1', 1_000)).toBe(750)
  hold('call_1', 200)
  limits.spend.requireAnythingLeft(spender(caller))
  // One process would begin this call: control decides.
  expect(() => hold('call_2', 60)).toThrow(askControl)
  hold('call_3', 50)
  expect(limits.spend.spentOut(spender(caller))).toBe(askControl)
  expect(limits.spend.holdsFor('call_3')).toBe(true)
  limits.spend.release('call_3')
  limits.spend.settle('call_1', { cost: 120 })
  const tokenIds = ['tok_1']
  const settlement = { organizationId: 'org_1', tokenId: 'tok_1', cost: 120, finishedAt: Date.UTC(2026, 10, 30, 12) }
  processes.credits.settle('front_0', 'call_1', { ...settlement, tokenIds })
  expect(processes.spend.left('org_1', 1_000)).toBe(750)
  await processes.run(20_000)
  expect(processes.spend.ofOrganization('org_1', 1_000)).toMatchObject({ spent: 120, held: 0, remaining: 880 })
  expect(processes.spend.left('tok_1', 2_000)).toBe(1_880)
})

test('only what running calls hold is told as held', async () => {
  const processes = await openProcesses({ fronts: 1 })
  const caller = limitedCaller({ monthlySpendLimit: 1_000 })
  const limits = frontOf(processes)
  limits.limiter.enter(caller, 'jobs')
  for (const _ of [1, 2]) expect(() => limits.spend.hold('call_1', spender(caller), 10)).toThrow(askControl)
  await processes.run(200)
  limits.spend.hold('call_1', spender(caller), 10)
  await processes.run(6_000)
  expect(processes.spend.ofOrganization('org_1', 1_000)).toMatchObject({ held: 10, remaining: 990 })
  // Another model goes on with the call at a higher price: what runs is not refused.
  limits.spend.release('call_1')
  limits.spend.hold('call_1', { ...spender(caller), organizationLimit: null }, 900)
  expect(limits.spend.spentOut(spender(caller))).toBe(askControl)
  processes.credits.gone('front_0')
  expect(processes.spend.ofOrganization('org_1', 1_000)).toMatchObject({ held: 0, remaining: 1_000 })
})

test('a front keeps a bounded number of organizations: those that were not used for longest go back', async () => {
  const processes = await openProcesses({ fronts: 1, maxAccounts: 20 })
  const callers = Array.from({ length: 60 }, (_, at) =>
    limitedCaller({ jobsPerMinute: 600 }, {}, { organizationId: `org_${at}`, tokenId: `tok_${at}` }),
  )
  for (const caller of callers) {
    isLocal(processes, caller)
    isLocal(processes, caller)
    await processes.run(processes.clock() + 200)
    expect(frontOf(processes).size()).toBeLessThanOrEqual(20)
  }
  expect(isLocal(processes, callers[0]!)).toBe(false)
  expect(callers.slice(-12).some(caller => isLocal(processes, caller))).toBe(true)
})
