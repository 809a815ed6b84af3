import {
  type Allowance,
  allowanceOf,
  type Entry,
  type LimitedCaller,
  type Limiter,
  unlimited,
} from '../accounts/limiter.ts'
import type { RateBucket } from '../accounts/plans.ts'
import type { TokenLimiter } from '../accounts/token-limiter.ts'
import { Failure } from '../failure.ts'
import { accountsOf, type LimitedAccount } from './account-limits.ts'
import { type CreditMessage, needs } from './credit-messages.ts'
import { type FrontCredit, openFrontCredits } from './front-credits.ts'
import { openFrontSpend } from './front-spend.ts'

/**
 * The failure of a request that a front process cannot admit: nothing is wrong with it, and the control process must
 * decide. Compare by identity and forward the request; no caller sees it.
 */
export const askControl = new Failure('no_capacity', 'The control process decides this request.')

/** The check of one request in a front. */
export interface FrontEntry extends Entry {
  /** Call it instead of `leave` if the request is forwarded after all: there it counts again. */
  undo: () => void
}

const nothing = (): void => {}
const asks: FrontEntry = {
  organization: unlimited,
  token: unlimited,
  parent: unlimited,
  refused: askControl,
  leave: nothing,
  undo: nothing,
}
const free: FrontEntry = { ...asks, refused: undefined }

/**
 * The limits of requests, tokens of models and spending in a front process. They decide at once from what control has
 * granted (see `openCredits`), and answer `askControl` where that is not enough. A caller without limits needs no grant.
 */
export function openFrontLimits({
  now = () => performance.now(),
  maxAccounts = 10_000,
}: {
  now?: () => number
  maxAccounts?: number
} = {}) {
  const credits = openFrontCredits({ now, maxAccounts })
  const spend = openFrontSpend(credits, askControl)
  /** By token id. Work may end long after its caller's token was last read. */
  const meters = new Map<string, readonly LimitedAccount[]>()

  /** What a request of the bucket lacks, as bits of `needs`. */
  function lacking({ limits }: LimitedAccount, credit: FrontCredit | undefined, bucket: RateBucket): number {
    let wants = 0
    if (limits[bucket] > 0 && (credit?.granted[bucket] ?? 0) - (credit?.used[bucket] ?? 0) < 1) wants |= needs[bucket]
    if (limits.tokens > 0 && (credit?.granted.tokens ?? 0) - (credit?.used.tokens ?? 0) < 1) wants |= needs.tokens
    if (bucket === 'jobs' && limits.concurrent > 0 && (credit?.granted.concurrent ?? 0) <= (credit?.open ?? 0))
      wants |= needs.concurrent
    return wants
  }

  /** The credits of a request, one for each account; undefined if it must ask control. */
  function covering(accounts: readonly LimitedAccount[], bucket: RateBucket): FrontCredit[] | undefined {
    const found: FrontCredit[] = []
    let all = true
    for (const account of accounts) {
      const credit = credits.find(account)
      const wants = lacking(account, credit, bucket)
      if (wants !== 0) {
        credits.lacks(account, wants)
        all = false
      } else if (credit) found.push(credit)
      else credits.know(account)
    }
    return all ? found : undefined
  }

  function allowance(credit: FrontCredit | undefined, kind: 'api' | 'jobs' | 'tokens'): Allowance {
    const perMinute = credit?.limits[kind] ?? 0
    return credit && perMinute > 0 ? allowanceOf(true, Math.max(0, credits.level(credit, kind)), perMinute) : unlimited
  }

  /** What the answer tells of the limits. */
  function allowances(accounts: readonly LimitedAccount[], bucket: RateBucket) {
    let [organization, token, parent] = [unlimited, unlimited, unlimited]
    for (const account of accounts) {
      const one = allowance(credits.find(account), bucket)
      if (account.role === 'organization') organization = one
      else if (account.role === 'token') token = one
      else if (one.limit > 0 && (parent.limit === 0 || one.remaining < parent.remaining)) parent = one
    }
    return { organization, token, parent }
  }

  function count(credit: FrontCredit, bucket: RateBucket): void {
    const { used, granted, levels, limits } = credit
    if (limits[bucket] > 0) {
      used[bucket]++
      levels[bucket] = { tokens: credits.level(credit, bucket) - 1, at: now() }
    }
    if (bucket === 'jobs' && limits.concurrent > 0) credit.open++
    credits.used(credit, bucket, granted[bucket] - used[bucket])
  }

  function enter(caller: LimitedCaller, bucket: RateBucket): FrontEntry {
    const accounts = accountsOf(caller)
    if (accounts.length === 0) return free
    const found = covering(accounts, bucket)
    if (!found) return asks
    const counted = found.filter(({ limits }) => limits.concurrent > 0)
    for (const credit of found) count(credit, bucket)
    const leave = () => {
      if (bucket !== 'jobs') return
      for (const credit of counted) {
        credit.open--
        credits.returned(credit)
      }
    }
    const sinces = found.map(({ since }) => since)
    const undo = () => {
      leave()
      found.forEach((credit, at) => {
        // What was recalled meanwhile is reported as used.
        if (credit.active && credit.since === sinces[at] && credit.used[bucket] > 0) credit.used[bucket]--
      })
    }
    return { ...allowances(accounts, bucket), refused: undefined, leave, undo }
  }

  const limiter = {
    /** Counts a request of the caller, or refuses it with `askControl`. Call `leave` when it has ended. */
    enter,
    /** The same limits without counting a request. */
    look(caller: LimitedCaller, bucket: RateBucket): FrontEntry {
      const accounts = accountsOf(caller)
      if (accounts.length === 0) return free
      return covering(accounts, bucket) ? { ...free, ...allowances(accounts, bucket) } : asks
    },
    /** How many submissions of an organization or a token are open in this front. Counted only where it has limits. */
    openRequests: (id: string): number => credits.get(id)?.open ?? 0,
  } satisfies Pick<Limiter, 'enter' | 'look' | 'openRequests'>

  const tokenLimiter = {
    /** What is left of the limits of the caller. */
    look(caller: LimitedCaller): Record<'organization' | 'token', Allowance> {
      const accounts = accountsOf(caller)
      const of = (role: LimitedAccount['role']): Allowance => {
        const account = accounts.find(one => one.role === role)
        return account ? allowance(credits.find(account), 'tokens') : unlimited
      }
      return { organization: of('organization'), token: of('token') }
    },
    /** Admits work of the caller. Throws `askControl`. */
    admit(caller: LimitedCaller): void {
      const accounts = accountsOf(caller).filter(({ limits }) => limits.tokens > 0)
      if (accounts.length === 0) return void meters.delete(caller.tokenId)
      let admitted = true
      for (const account of accounts) {
        const credit = credits.find(account)
        if (credit && credit.granted.tokens - credit.used.tokens >= 1) continue
        credits.lacks(account, needs.tokens)
        admitted = false
      }
      if (!admitted) throw askControl
      meters.set(caller.tokenId, accounts)
      if (meters.size > maxAccounts) meters.delete(meters.keys().next().value!)
    },
    /** Subtracts the tokens that work of the API token has used. Control subtracts them when it gets the record of the work. */
    used(tokenId: string, tokens: number): void {
      if (tokens === 0) return
      for (const account of meters.get(tokenId) ?? []) {
        const credit = credits.find(account)
        if (!credit) continue
        credit.used.tokens += tokens
        credit.levels.tokens = { tokens: credits.level(credit, 'tokens') - tokens, at: now() }
        credits.used(credit, 'tokens', credit.granted.tokens - credit.used.tokens)
      }
    },
  } satisfies Omit<TokenLimiter, 'level' | 'know'>

  return {
    limiter,
    tokenLimiter,
    spend,
    /** See `pending` of `openFrontCredits`. */
    pending: (alongside: boolean): CreditMessage | undefined => credits.pending(alongside),
    /** Takes in a message of control. Send what `pending` returns at once: requests wait for answers to recalls. */
    apply: (message: CreditMessage): void => credits.apply(message),
    /** Organizations and tokens that this front knows. */
    size: credits.size,
  }
}
export type FrontLimits = ReturnType<typeof openFrontLimits>
