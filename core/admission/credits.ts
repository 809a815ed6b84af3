import type { LimitedCaller } from '../accounts/limiter.ts'
import { accountsOf, sameLimits } from './account-limits.ts'
import { addCredit, type CreditMessage, type UseRow, useAt } from './credit-messages.ts'
import {
  type Account,
  buckets,
  type Credit,
  type CreditSize,
  type Front,
  type LendingOptions,
  openLending,
} from './lending.ts'
import type { Settlement, Spend } from './spend.ts'

/** How long a request waits for credits that are recalled, milliseconds. */
const longestWaitMs = 1_000
/** After this time without a word of the front its credit is recalled: the message was lost. */
const validMs = 30_000
/** Records of ended calls arrive long before; what their costs have not used of an amount then is free again. */
const settledMs = 60_000
/** Credits of a front that one `tick` looks at. */
const checkedAtOnce = 1_000

/**
 * Grants front processes parts of the limits of organizations and tokens ahead of time, so that a front admits most
 * requests without a message. What is granted is taken out of the limit first, so all processes together never admit
 * more than one would. Near a limit nothing is granted, what was granted is recalled, and control decides every request.
 * Lives in the control process, which owns the limits; `openFrontLimits` is its counterpart.
 */
export function openCredits(
  options: LendingOptions & {
    spend: Pick<Spend, 'settle'>
    /** Called when there is something to tell a front: send it what `pending` returns soon, for requests may wait for it. */
    changed?: (frontId: string) => void
    now?: () => number
  },
) {
  const { limiter, tokenLimiter, spend, changed = () => {}, now = () => performance.now() } = options
  /** Accounts for which requests wait. */
  const waited = new Set<Account>()
  const fronts = new Map<string, Front>()
  const accounts = new Map<string, Account>()
  const lending = openLending(options)
  const { isNear, lacksWhatIsLent, permitsLeft, setOpen, setAmount, countUse, returnUnused } = lending
  let version = 0
  let isStopped = false

  function send(credit: Credit): void {
    credit.row.version = ++version
    credit.changedAt = now()
    const { front } = credit
    front.changed.add(credit)
    if (front.changed.size === 1) changed(front.id)
  }

  function recallOne(credit: Credit): void {
    credit.row.active = false
    credit.isRecalled = true
    credit.account.recalledAt ??= now()
    send(credit)
  }

  function recall({ credits }: Account): void {
    for (const credit of credits.values()) if (credit.row.active) recallOne(credit)
  }

  function wake(account: Account): void {
    waited.delete(account)
    for (const resolve of account.waiting.splice(0)) resolve()
  }

  /** The front uses no more of the credit: what it has not used is in the limits again. */
  function close(credit: Credit): void {
    const { account, row, used } = credit
    for (const bucket of buckets) returnUnused(credit, bucket)
    row.tokens = used.tokens
    row.active = false
    credit.isRecalled = false
    setOpen(credit, credit.open, credit.open)
    for (const other of account.credits.values()) if (other.isRecalled) return
    account.recalledAt = undefined
    wake(account)
  }

  function forget(credit: Credit): void {
    const { account, front } = credit
    front.credits.delete(account.id)
    front.changed.delete(credit)
    account.credits.delete(front)
    if (account.credits.size === 0) accounts.delete(account.id)
  }

  /** Takes in what a front has used of its credit. */
  function report(credit: Credit, use: UseRow): void {
    const { row } = credit
    credit.changedAt = now()
    // A front that does not know the credit any more may have used it all.
    const all = !use.known && use.version === row.version
    if (all || use.version >= row.since) {
      for (const bucket of buckets) countUse(credit, bucket, all ? row[bucket] : use[bucket])
      credit.used.tokens = Math.max(credit.used.tokens, all ? row.tokens : use.tokens)
    }
    const isCurrent = use.amountSince === row.amountSince
    const closed = use.closed && use.version === row.version
    const back = isCurrent ? Math.max(0, use.returned - credit.returned) : closed ? credit.amount : 0
    if (isCurrent) credit.returned = Math.max(credit.returned, use.returned)
    setAmount(credit, Math.max(0, credit.amount - back), isCurrent ? use.drawn : closed ? 0 : credit.drawn)
    setOpen(credit, row.active || credit.isRecalled ? row.concurrent : use.open, use.open)
    if (closed) close(credit)
  }

  /** Begins a credit again that the front has closed. */
  function begin(credit: Credit): void {
    const { row, used } = credit
    row.active = true
    row.since = version + 1
    row.api = row.jobs = row.tokens = 0
    used.api = used.jobs = used.tokens = 0
    // The front may have forgotten what it returned, unless its calls still hold some of it.
    if (credit.drawn > 0) return
    row.amountSince = version + 1
    row.amount = 0
    credit.returned = 0
  }

  /** Adds to a credit what fits of what the front needs. */
  function extend(account: Account, front: Front, wants: number): void {
    const added = lending.missing(account, front, wants, fronts.size)
    if (Object.values(added).every(one => one === 0)) return
    const credit = account.credits.get(front) ?? newCredit(account, front)
    if (!credit.row.active) begin(credit)
    add(credit, added)
  }

  function add(credit: Credit, added: CreditSize): void {
    const { account, row } = credit
    const { id, limits } = account
    for (const bucket of buckets) {
      if (added[bucket] > 0) limiter.lendPermits(id, bucket, limits[bucket], added[bucket])
      row[bucket] += added[bucket]
      row.levels[bucket] = limits[bucket] > 0 ? permitsLeft(account, bucket) : 0
    }
    // A long answer may have used more than was granted.
    row.tokens = Math.max(row.tokens, credit.used.tokens) + added.tokens
    row.levels.tokens = limits.tokens > 0 ? tokenLimiter.level(id, limits.tokens) : 0
    setOpen(credit, row.concurrent + added.concurrent, credit.open)
    row.amount += added.amount
    setAmount(credit, credit.amount + added.amount, credit.drawn)
    send(credit)
  }

  function newCredit(account: Account, front: Front): Credit {
    const credit: Credit = {
      account,
      front,
      row: {
        limits: account.limits,
        version: 0,
        since: 0,
        amountSince: 0,
        active: false,
        api: 0,
        jobs: 0,
        tokens: 0,
        concurrent: 0,
        amount: 0,
        levels: { api: 0, jobs: 0, tokens: 0 },
      },
      used: { api: 0, jobs: 0, tokens: 0 },
      open: 0,
      drawn: 0,
      returned: 0,
      amount: 0,
      isRecalled: false,
      changedAt: now(),
    }
    account.credits.set(front, credit)
    front.credits.set(account.id, credit)
    return credit
  }

  function applyRow(front: Front, id: string, use: UseRow): void {
    let account = accounts.get(id)
    const credit = front.credits.get(id)
    if (credit) report(credit, use)
    if (!account) {
      if (use.wants === 0) return
      account = {
        id,
        limits: use.limits,
        wants: 0,
        credits: new Map(),
        recalledAt: undefined,
        waiting: [],
      }
    }
    account.wants |= use.wants
    // Limits that have changed apply to new credits, once the old ones are back.
    if (!sameLimits(account.limits, use.limits) && use.wants > 0) recall(account)
    if (!sameLimits(account.limits, use.limits) && use.wants > 0 && account.recalledAt === undefined) {
      account.limits = use.limits
      for (const one of account.credits.values()) one.row.limits = use.limits
    }
    if (isStopped || isNear(account)) recall(account)
    else if (account.recalledAt === undefined && (use.wants > 0 || credit?.row.active))
      extend(account, front, use.wants)
    if (account.credits.size > 0) accounts.set(id, account)
    if (credit && !credit.row.active && !credit.isRecalled && credit.open === 0 && credit.amount === 0) forget(credit)
  }

  /** Makes good for messages that were lost: nothing was heard or written of the credit for this time. */
  function check(credit: Credit, silentMs: number): void {
    if (credit.isRecalled) {
      if (silentMs >= longestWaitMs) send(credit)
    } else if (credit.row.active || credit.open > 0 || credit.drawn > 0) {
      if (silentMs >= validMs) recallOne(credit)
    } else if (silentMs >= settledMs) {
      setAmount(credit, 0, 0)
      forget(credit)
    }
  }

  /** What a request must wait for before it is counted here. */
  function waitsOf(caller: LimitedCaller): Promise<void>[] | undefined {
    let waits: Promise<void>[] | undefined
    for (const { id, limits } of accountsOf(caller)) {
      const account = accounts.get(id)
      if (!account) continue
      const lacks = lacksWhatIsLent(account, limits)
      if (lacks || isNear(account) || !sameLimits(account.limits, limits)) recall(account)
      const { recalledAt } = account
      if (!lacks || recalledAt === undefined || now() - recalledAt >= longestWaitMs) continue
      waited.add(account)
      waits ??= []
      waits.push(new Promise<void>(resolve => account.waiting.push(resolve)))
    }
    return waits
  }

  async function enterLater<T>(caller: LimitedCaller, enter: () => T, first: Promise<void>[]): Promise<T> {
    const deadline = now() + longestWaitMs
    for (let waits: Promise<void>[] | undefined = first; waits; ) {
      await Promise.all(waits)
      // Those that waited with it may have taken what came back, and fronts may hold more of another limit.
      waits = now() < deadline ? waitsOf(caller) : undefined
    }
    return enter()
  }

  return {
    /** A front process has started. */
    join(frontId: string): void {
      const credits = new Map<string, Credit>()
      fronts.set(frontId, { id: frontId, credits, changed: new Set(), cursor: credits.values() })
    },

    /**
     * A front process has ended, and its calls are recorded as failed. Its open requests and amounts are free again; permits
     * of which it has not reported the use count as used.
     */
    gone(frontId: string): void {
      const front = fronts.get(frontId)
      if (!front) return
      fronts.delete(frontId)
      for (const credit of front.credits.values()) {
        for (const bucket of buckets) countUse(credit, bucket, credit.row[bucket])
        close(credit)
        setOpen(credit, 0, 0)
        setAmount(credit, 0, 0)
        forget(credit)
      }
    },

    /** Takes in a message of a front. Apply what came with it (records of calls) first. */
    apply(frontId: string, message: CreditMessage): void {
      const front = fronts.get(frontId)
      if (front) message.ids.forEach((id, index) => applyRow(front, id, useAt(message, index)))
    },

    /** Grants nothing more, and recalls everything. */
    stop(): void {
      isStopped = true
      for (const account of accounts.values()) recall(account)
    },

    /** What a front is to be told; undefined: nothing. Send it at once: what it recalls holds up requests. */
    pending(frontId: string): CreditMessage | undefined {
      const front = fronts.get(frontId)
      if (!front || front.changed.size === 0) return undefined
      const message: CreditMessage = { ids: [], numbers: [] }
      for (const credit of front.changed) addCredit(message, credit.account.id, credit.row)
      front.changed.clear()
      return message
    },

    /**
     * Runs `enter`, which counts a request of the caller in the control process. Recalls credits near a limit; where
     * control would refuse the request although a front may hold what it lacks, it first waits until the credits are
     * back, for a second at most.
     */
    enter<T>(caller: LimitedCaller, enter: () => T): T | Promise<T> {
      const waits = waitsOf(caller)
      return waits ? enterLater(caller, enter, waits) : enter()
    },

    /**
     * A call of a front has ended and is billed. Its cost is taken from what the front holds.
     * `settlement.tokenIds` names the accounts of its token.
     */
    settle(frontId: string, callId: string, settlement: Settlement): void {
      const { organizationId, tokenIds = [], cost } = settlement
      const credits = fronts.get(frontId)?.credits
      for (const id of [organizationId, ...tokenIds]) {
        const credit = credits?.get(id)
        if (credit) setAmount(credit, Math.max(0, credit.amount - cost), credit.drawn)
      }
      spend.settle(callId, settlement)
    },

    /** Call several times a second: ends waits that last too long, and makes good for lost messages. */
    tick(): void {
      const at = now()
      for (const account of waited) if (at - (account.recalledAt ?? 0) >= longestWaitMs) wake(account)
      for (const front of fronts.values()) {
        for (let checked = 0; checked < checkedAtOnce; checked++) {
          const { value: credit, done } = front.cursor.next()
          if (done) {
            front.cursor = front.credits.values()
            break
          }
          check(credit, at - credit.changedAt)
        }
      }
    },

    /** Accounts of which fronts hold something. */
    size: (): number => accounts.size,
  }
}
export type Credits = ReturnType<typeof openCredits>
