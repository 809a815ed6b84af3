import { isEnough, type LimitedCaller, refilled } from '../../../core/accounts/limiter.ts'
import { type AccountLimits, accountsOf, type LimitedAccount } from '../../../core/admission/account-limits.ts'
import { askControl, type FrontEntry } from '../../../core/admission/front-limits.ts'
import { spenderOf, tokenIdsOf } from '../../../core/admission/spender.ts'
import { Failure } from '../../../core/failure.ts'
import type { Processes } from './_fronts.ts'

/** What really happened to the limits of one organization or token, whichever process admitted it. */
interface Truth {
  limits: AccountLimits
  bucket: { tokens: number; at: number }
  open: number
  spent: number
  held: number
  /** When requests ended last. */
  endedAt: number[]
}

export interface LoadCount {
  local: number
  forwarded: number
  refused: number
  /** Requests that control waited for. */
  waited: number
  /** Refusals of control although the limits allowed the request. */
  wrong: string[]
}

interface Running {
  front: string | undefined
  end: (failed: boolean) => void
}

/** Sends requests to fronts, and checks of each that all processes together admit no more than one would. */
export function openLoad(processes: Processes) {
  const { random, clock, limiter, spend, credits, tokenLimiter, fronts, after } = processes
  const truths = new Map<string, Truth>()
  const running = new Set<Running>()
  const violations: string[] = []
  const count: LoadCount = { local: 0, forwarded: 0, refused: 0, waited: 0, wrong: [] }
  let calls = 0

  function truthOf({ id, limits }: LimitedAccount): Truth {
    const known = truths.get(id)
    if (known) {
      known.limits = limits
      return known
    }
    const bucket = { tokens: limits.jobs, at: clock() }
    const truth = { limits, bucket, open: 0, spent: 0, held: 0, endedAt: [] }
    truths.set(id, truth)
    return truth
  }

  /** The limit that one process would refuse the request for; undefined if it would admit it. */
  function refusedBy(caller: LimitedCaller, amount: number, slack: number): string | undefined {
    for (const account of accountsOf(caller)) {
      const { limits, bucket, open, spent, held, endedAt } = truthOf(account)
      const recent = slack > 0 ? endedAt.filter(at => clock() - at < 150).length : 0
      const less = slack * limits.jobs
      if (limits.jobs > 0 && !isEnough(refilled(bucket, limits.jobs, clock()) - less)) return `jobs of ${account.id}`
      if (limits.concurrent > 0 && open + recent >= limits.concurrent) return `open requests of ${account.id}`
      if (amount > 0 && limits.spend !== null && spent + held + recent * amount >= limits.spend)
        return `spending of ${account.id}`
    }
    return undefined
  }

  function begin(caller: LimitedCaller, amount: number, process: string): Truth[] {
    const by = refusedBy(caller, amount, 0)
    if (by) violations.push(`${process} admitted beyond the ${by} at ${clock()}`)
    return accountsOf(caller).map(account => {
      const truth = truthOf(account)
      const { jobs } = account.limits
      if (jobs > 0) truth.bucket = { tokens: refilled(truth.bucket, jobs, clock()) - 1, at: clock() }
      truth.open++
      truth.held += amount
      return truth
    })
  }

  function finish(found: Truth[], amount: number, cost: number): void {
    for (const truth of found) {
      truth.open--
      truth.held -= amount
      truth.spent += cost
      truth.endedAt = [...truth.endedAt.slice(-50), clock()]
    }
  }

  const settlementOf = (caller: LimitedCaller, cost: number) => ({
    organizationId: caller.organizationId,
    tokenId: caller.tokenId,
    cost,
    finishedAt: Date.UTC(2026, 10, 30, 12) + clock(),
    tokenIds: tokenIdsOf(caller.token.originId, caller.token.parentLimits),
  })
  const spenderFor = (caller: LimitedCaller) =>
    spenderOf({ ...caller.token, organizationId: caller.organizationId }, caller.limits.monthlySpendLimit)

  interface Work {
    caller: LimitedCaller
    amount: number
    lastsMs: number
    tokens: number
  }

  function admitInFront(id: string, { caller, amount, lastsMs, tokens }: Work): boolean {
    const front = fronts.get(id)!
    const { limits } = front
    const call = `call_${++calls}`
    const entry: FrontEntry = limits.limiter.enter(caller, 'jobs')
    if (entry.refused === askControl) return false
    try {
      limits.tokenLimiter.admit(caller)
      limits.spend.hold(call, spenderFor(caller), amount)
    } catch (thrown) {
      if (thrown !== askControl) throw thrown
      entry.undo()
      return false
    }
    count.local++
    const found = begin(caller, amount, id)
    const one: Running = {
      front: id,
      end(failed) {
        if (!running.delete(one)) return
        const cost = Math.floor(random() * (amount + 1))
        finish(found, amount, cost)
        const write = () => {
          tokenLimiter.used(caller.tokenId, tokens)
          credits.settle(id, call, settlementOf(caller, cost))
        }
        // What is not recorded when a front ends is recorded by control.
        if (failed) return write()
        entry.leave()
        limits.tokenLimiter.used(caller.tokenId, tokens)
        limits.spend.settle(call, { cost })
        processes.record(front, write)
      },
    }
    running.add(one)
    after(lastsMs, () => one.end(false))
    return true
  }

  function decide({ caller, amount, lastsMs, tokens }: Work): Failure | undefined {
    const call = `call_${++calls}`
    const entry = limiter.enter(caller, 'jobs')
    if (entry.refused) return entry.refused
    try {
      tokenLimiter.admit(caller)
      spend.hold(call, spenderFor(caller), amount)
    } catch (thrown) {
      entry.leave()
      // One process counts such a request too.
      for (const account of accountsOf(caller)) {
        const truth = truthOf(account)
        const { jobs } = account.limits
        if (jobs > 0) truth.bucket = { tokens: refilled(truth.bucket, jobs, clock()) - 1, at: clock() }
      }
      return Failure.from(thrown)
    }
    const found = begin(caller, amount, 'control')
    const one: Running = {
      front: undefined,
      end() {
        running.delete(one)
        const cost = Math.floor(random() * (amount + 1))
        finish(found, amount, cost)
        entry.leave()
        tokenLimiter.used(caller.tokenId, tokens)
        spend.settle(call, settlementOf(caller, cost))
      },
    }
    running.add(one)
    after(lastsMs, () => one.end(false))
    return undefined
  }

  async function forward(work: Work, slack: number): Promise<void> {
    count.forwarded++
    let by: string | undefined
    const decision = credits.enter(work.caller, () => {
      by = refusedBy(work.caller, work.amount, slack)
      return decide(work)
    })
    if (decision instanceof Promise) count.waited++
    const refused = await decision
    if (!refused) return
    count.refused++
    const byTokens = refused.facts?.limit === 'tokens_per_minute'
    if (!by && !byTokens) count.wrong.push(`${refused.message} at ${clock()}`)
  }

  return {
    count,
    violations,
    running,
    truths,
    /** A request arrives at a front. `slack`: the part of a limit by which control may be too strict. */
    send(frontId: string, work: Work, slack = 0): void {
      const front = fronts.get(frontId)
      if (!front?.alive || admitInFront(frontId, work)) return
      after(random() * 5, () => void forward(work, slack))
    },
    /** Ends a front process: what it has not sent is lost. */
    kill(frontId: string): void {
      const front = fronts.get(frontId)!
      front.alive = false
      fronts.delete(frontId)
      for (const one of running) if (one.front === frontId) one.end(true)
      credits.gone(frontId)
    },
  }
}
