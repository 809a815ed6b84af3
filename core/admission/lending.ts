import { isEnough, type Limiter } from '../accounts/limiter.ts'
import type { RateBucket } from '../accounts/plans.ts'
import type { TokenLimiter } from '../accounts/token-limiter.ts'
import type { AccountLimits } from './account-limits.ts'
import { type CreditRow, needs } from './credit-messages.ts'
import { amountFor, openFor, permitsFor } from './credit-size.ts'
import type { Spend } from './spend.ts'

/** What one front holds of the limits of one organization or token. */
export interface Credit {
  account: Account
  front: Front
  row: CreditRow
  /** What the front has reported. */
  used: { api: number; jobs: number; tokens: number }
  open: number
  drawn: number
  returned: number
  /** What the front holds of the spend limit: the rest of all amounts. */
  amount: number
  /** The recall is not answered yet. */
  isRecalled: boolean
  /** When it was last sent or reported, milliseconds of the clock. */
  changedAt: number
}

/** An organization or token of which fronts hold something. */
export interface Account {
  id: string
  limits: AccountLimits
  /** All that fronts have asked for, as bits of `needs`. */
  wants: number
  credits: Map<Front, Credit>
  /** Since when a recall is not answered; undefined if none is. */
  recalledAt: number | undefined
  /** Requests that wait until nothing is recalled. */
  waiting: (() => void)[]
}

export interface Front {
  id: string
  credits: Map<string, Credit>
  /** Credits of which the front is to be told. */
  changed: Set<Credit>
  /** Where `tick` continues. */
  cursor: MapIterator<Credit>
}

/** A part of the limits of an account, as in `CreditRow`. */
export type CreditSize = Record<RateBucket | 'concurrent' | 'tokens' | 'amount', number>

/** The limits of which parts are lent. */
export interface LendingOptions {
  limiter: Pick<Limiter, 'level' | 'heldOpen' | 'openRequests' | 'lendPermits' | 'returnPermits' | 'lendOpen'>
  tokenLimiter: Pick<TokenLimiter, 'level'>
  spend: Pick<Spend, 'left' | 'lend'>
}

/** Both buckets of requests. */
export const buckets: readonly RateBucket[] = ['api', 'jobs']

/** Moves parts of limits to credits and back, and decides how large they may be. */
export function openLending({ limiter, tokenLimiter, spend }: LendingOptions) {
  const sum = ({ credits }: Account, of: (credit: Credit) => number): number => {
    let total = 0
    for (const credit of credits.values()) total += of(credit)
    return total
  }
  const unusedPermits = (credit: Credit, bucket: RateBucket): number => credit.row[bucket] - credit.used[bucket]
  const unusedTokens = ({ row, used }: Credit): number => Math.max(0, row.tokens - used.tokens)
  /** What is left of a bucket in all processes. */
  const permitsLeft = (account: Account, bucket: RateBucket): number =>
    limiter.level(account.id, bucket, account.limits[bucket]) + sum(account, one => unusedPermits(one, bucket))
  /** What is left of a spend limit, counting what no call holds yet. */
  const amountLeft = (account: Account, limit: number): number =>
    spend.left(account.id, limit) + sum(account, ({ amount, drawn }) => Math.max(0, amount - drawn))

  /** Whether so little is left of a limit that control must decide. */
  function isNear(account: Account): boolean {
    const { id, limits, wants } = account
    for (const bucket of buckets)
      if (limits[bucket] > 0 && wants & needs[bucket] && permitsLeft(account, bucket) < limits[bucket] / 2) return true
    if (limits.tokens > 0 && wants & needs.tokens && tokenLimiter.level(id, limits.tokens) < limits.tokens / 2)
      return true
    if (limits.concurrent > 0 && limiter.openRequests(id) > (limits.concurrent * 3) / 4) return true
    return limits.spend !== null && (wants & needs.spend) !== 0 && amountLeft(account, limits.spend) < limits.spend / 10
  }

  /** Whether control would refuse a request although a front may hold what it lacks. */
  function lacksWhatIsLent(account: Account, limits: AccountLimits): boolean {
    const { id } = account
    for (const bucket of buckets)
      if (
        limits[bucket] > 0 &&
        !isEnough(limiter.level(id, bucket, limits[bucket])) &&
        sum(account, one => unusedPermits(one, bucket)) > 0
      )
        return true
    if (
      limits.concurrent > 0 &&
      limiter.heldOpen(id) >= limits.concurrent &&
      sum(account, one => (one.row.active || one.isRecalled ? one.row.concurrent : 0)) > 0
    )
      return true
    return limits.spend !== null && spend.left(id, limits.spend) <= 0 && sum(account, one => one.amount - one.drawn) > 0
  }

  /** What is lent of the limit of open requests: what may be opened, or of an inactive credit what is open. */
  function setOpen(credit: Credit, concurrent: number, open: number): void {
    const { account, row } = credit
    if (concurrent !== row.concurrent || open !== credit.open)
      limiter.lendOpen(account.id, concurrent - row.concurrent, open - credit.open)
    row.concurrent = concurrent
    credit.open = open
  }

  function setAmount(credit: Credit, amount: number, drawn: number): void {
    if (amount !== credit.amount || drawn !== credit.drawn)
      spend.lend(credit.account.id, amount - credit.amount, drawn - credit.drawn)
    credit.amount = amount
    credit.drawn = drawn
  }

  function countUse(credit: Credit, bucket: RateBucket, total: number): void {
    const used = Math.min(total, credit.row[bucket]) - credit.used[bucket]
    if (used <= 0) return
    limiter.returnPermits(credit.account.id, bucket, credit.account.limits[bucket], { used, unused: 0 })
    credit.used[bucket] += used
  }

  /** What the front has not used of the permits of a bucket is in it again. */
  function returnUnused(credit: Credit, bucket: RateBucket): void {
    const { account, row, used } = credit
    const unused = unusedPermits(credit, bucket)
    if (unused > 0) limiter.returnPermits(account.id, bucket, account.limits[bucket], { used: 0, unused })
    row[bucket] = used[bucket]
  }

  /** What fits of what a front needs and does not have. All zeros near the limits. */
  function missing(account: Account, front: Front, wants: number, fronts: number): CreditSize {
    const { id, limits } = account
    const old = account.credits.get(front)
    const active = old?.row.active === true ? old : undefined
    const has = (need: keyof typeof needs): boolean =>
      limits[need] !== 0 &&
      limits[need] !== null &&
      ((wants & needs[need]) !== 0 || (active !== undefined && active.row[need === 'spend' ? 'amount' : need] > 0))
    const added = { api: 0, jobs: 0, concurrent: 0, tokens: 0, amount: 0 }
    /** A front writes when half of a credit is left. The others in its message are refilled if a quarter is used. */
    const rest = (each: number, unused: number): number => (unused * 4 < each * 3 ? each - unused : 0)
    for (const bucket of buckets) {
      if (!has(bucket)) continue
      const each = permitsFor(permitsLeft(account, bucket), limits[bucket], fronts)
      added[bucket] = rest(each, active ? unusedPermits(active, bucket) : 0)
    }
    if (has('tokens')) {
      const left = tokenLimiter.level(id, limits.tokens)
      const each = permitsFor(left, limits.tokens, fronts)
      const free = (left - limits.tokens / 2) / 2 - sum(account, one => (one.row.active ? unusedTokens(one) : 0))
      added.tokens = Math.max(0, Math.min(rest(each, active ? unusedTokens(active) : 0), Math.floor(free)))
    }
    if (has('concurrent')) {
      const each = openFor(limiter.openRequests(id), limits.concurrent, fronts)
      const free = Math.floor((limits.concurrent - limiter.heldOpen(id)) / 2)
      const unused = (old?.row.concurrent ?? 0) - (old?.open ?? 0)
      added.concurrent = Math.max(0, Math.min(rest(each, unused), free))
    }
    if (has('spend') && limits.spend !== null) {
      const each = amountFor(amountLeft(account, limits.spend), limits.spend, fronts)
      added.amount = Math.min(
        rest(each, active ? active.amount - active.drawn : 0),
        Math.max(0, Math.floor(spend.left(id, limits.spend) / 2)),
      )
    }
    return added
  }

  return { isNear, lacksWhatIsLent, permitsLeft, setOpen, setAmount, countUse, returnUnused, missing }
}
