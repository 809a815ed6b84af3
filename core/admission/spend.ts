import type { Plans } from '../accounts/plans.ts'
import { type SpendReading, spendReading } from '../accounts/spend-view.ts'
import { Failure } from '../failure.ts'
import type { Log } from '../log.ts'
import { moneyText } from '../money-text.ts'
import { type Month, monthOf } from '../month.ts'
import type { FinishedJob, Store, TokenRecord } from '../store/store.ts'
import { type Budget, openBudgets } from './budgets.ts'
import { costsOf, type HandedSpend, type HeldWork, openTakenSpend, type SpendChange } from './handed-spend.ts'
import {
  accountIdOf,
  accountIdsOf,
  type Bound,
  boundsOf,
  fallbackAccount,
  type Spender,
  spenderOf,
  tokenIdsOf,
} from './spender.ts'

/** The sums of an organization or of a token. */
interface Account {
  /** By first millisecond of the month: a clock that is set back finds the month that it left. */
  spent: Map<number, number>
  held: number
  /** What front processes hold for their calls, running and to come. */
  lent: number
  /** The part of it that running calls hold. */
  lentRunning: number
}

interface Hold {
  organizationId: string
  tokenIds: readonly string[]
  organization: Account
  /** Of the token, of those whose budgets it shares, and of the fallback that does the work. */
  tokens: readonly Account[]
  amount: number
}

/** What has ended, and what it cost. */
export interface Settlement {
  organizationId: string
  tokenId: string
  /** Millionths of the currency unit. */
  cost: number
  /** Epoch milliseconds. */
  finishedAt: number
  /** The ids of its accounts besides that of the organization, where they are known. */
  tokenIds?: readonly string[]
  /** The model that did it as a fallback. */
  fallbackModelId?: string | undefined
  /** Whether the store has it already, because it belongs to a stored job. */
  isStored?: true
}

/**
 * What organizations and tokens have spent this month and hold, in memory: the sums that the store has, changed in the
 * same event loop turn in which work begins and ends. Work that may cost something begins while its organization and its
 * token have anything left of their limits, counting what running work holds: so all together exceed a limit by less
 * than the last hold.
 */
export async function openSpend(options: {
  store: Pick<Store, 'spend' | 'organizations' | 'tokens'>
  plans: Pick<Plans, 'limitsOf'>
  /** ISO 4217 code of all amounts. */
  currency: string
  log: Log
  clock?: { now(): number }
}) {
  const { store, plans, currency, log, clock = { now: Date.now } } = options
  /** By id of an organization, of the first token of rotations, or of a fallback of an organization. */
  const accounts = new Map<string, Account>()
  /** By job id. */
  const holds = new Map<string, Hold>()
  /** The calls whose hold on a limit of a fallback is in the store. */
  const storedHolds = new Set<string>()
  const budgets = openBudgets(currency)
  let month = monthOf(clock.now())
  let told: ((change: SpendChange) => void) | undefined

  function accountOf(id: string): Account {
    let account = accounts.get(id)
    if (!account) accounts.set(id, (account = { spent: new Map(), held: 0, lent: 0, lentRunning: 0 }))
    return account
  }

  /** The current month, by the clock of the machine. */
  function currentMonth(): Month {
    const now = clock.now()
    if (now < month.start || now >= month.end) month = monthOf(now)
    return month
  }

  function keep({ id, organizationId, tokenIds, amount }: HeldWork): void {
    const hold: Hold = {
      organizationId,
      tokenIds,
      organization: accountOf(organizationId),
      tokens: tokenIds.map(accountOf),
      amount,
    }
    hold.organization.held += amount
    for (const token of hold.tokens) token.held += amount
    holds.set(id, hold)
    told?.({ kind: 'held', id, organizationId, tokenIds, amount })
  }

  function release(id: string): Hold | undefined {
    const hold = holds.get(id)
    if (!hold) return undefined
    holds.delete(id)
    hold.organization.held -= hold.amount
    for (const token of hold.tokens) token.held -= hold.amount
    return hold
  }

  function add(account: Account, cost: number, at: number): void {
    const { start } = at >= month.start && at < month.end ? month : monthOf(at)
    account.spent.set(start, (account.spent.get(start) ?? 0) + cost)
  }

  /** The work has ended and costs nothing. Harmless if it holds nothing. */
  function drop(id: string): void {
    budgets.end(id, 0)
    if (storedHolds.delete(id))
      store.spend
        .dropFallback(id)
        .catch((thrown: unknown) =>
          log.warn('A call keeps its hold on the limit of a fallback until the month ends', { job: id }, thrown),
        )
    if (release(id)) told?.({ kind: 'ended', id, settlement: null })
  }

  function settle(id: string, settlement: Settlement): void {
    const { organizationId, tokenId, cost, finishedAt, tokenIds, fallbackModelId, isStored } = settlement
    const hold = release(id)
    // Its ledger row ends what the store holds.
    storedHolds.delete(id)
    budgets.end(id, cost)
    if (!isStored) {
      const known = tokenIds ?? hold?.tokenIds
      const billed = { organizationId, tokenId, cost, finishedAt, ...(known && { tokenIds: known }) }
      told?.({ kind: 'ended', id, settlement: billed })
    }
    if (cost <= 0) return
    add(hold?.organization ?? accountOf(organizationId), cost, finishedAt)
    const tokens = hold?.tokens ?? tokenIds?.map(accountOf)
    if (tokens) return tokens.forEach(token => add(token, cost, finishedAt))
    if (fallbackModelId !== undefined)
      add(accountOf(fallbackAccount(organizationId, fallbackModelId)), cost, finishedAt)
    // It was accepted while its model cost nothing.
    store.tokens.find(organizationId, tokenId).then(
      token => {
        for (const id of tokenIdsOf(token?.originId ?? tokenId, token?.parentLimits ?? []))
          add(accountOf(id), cost, finishedAt)
      },
      (thrown: unknown) => log.warn('The spending of a token is not known until the next start', { job: id }, thrown),
    )
  }

  function lend(id: string, amount: number, running: number): void {
    const account = accountOf(id)
    account.lent += amount
    account.lentRunning += running
    told?.({ kind: 'lent', id, amount, running })
  }

  const spentBy = (id: string): number => accounts.get(id)?.spent.get(currentMonth().start) ?? 0
  const heldBy = (id: string): number => {
    const account = accounts.get(id)
    return account ? account.held + account.lentRunning : 0
  }
  const left = (id: string, limit: number): number => {
    const account = accounts.get(id)
    return limit - spentBy(id) - (account ? account.held + account.lent : 0)
  }
  const reached = (id: string, limit: number | null): boolean => limit !== null && spentBy(id) >= limit
  const usedUp = (id: string, limit: number | null): boolean => limit !== null && left(id, limit) <= 0

  function refused({ id, limit, tokenName }: Bound): Failure {
    const { end } = currentMonth()
    const held = heldBy(id)
    const whose = tokenName === undefined ? 'this organization' : `the token '${tokenName}'`
    const amount = (millionths: number) => `${moneyText(millionths / 1e6)} ${currency}`
    const still = held > 0 ? ` Running work holds ${amount(held)} of it until it ends.` : ''
    return new Failure(
      'quota_exceeded',
      `You exceeded the current monthly quota of ${whose} (spend limit ${amount(limit ?? 0)}); it will reset at ${timeText(end)}.${still}`,
      { facts: { reset_at: end / 1000, quota: tokenName === undefined ? 'organization' : 'token' } },
    )
  }

  /** Throws Failure `quota_exceeded` if nothing is left of a limit. */
  function requireAnythingLeft(spender: Spender): void {
    for (const bound of boundsOf(spender)) if (usedUp(bound.id, bound.limit)) throw refused(bound)
  }

  /** The failure of work that may cost more than is left of the limit of its fallback. */
  function fallbackFailure({ organizationId, fallback }: Spender, amount: number): Failure | undefined {
    const limit = fallback?.limit ?? null
    if (!fallback || limit === null || amount <= left(fallbackAccount(organizationId, fallback.modelId), limit))
      return undefined
    return new Failure(
      'quota_exceeded',
      `This organization has used its monthly limit for '${fallback.modelId}' as a fallback (${moneyText(limit / 1e6)} ${currency}).`,
    )
  }

  const read = (id: string, limit: number | null): SpendReading =>
    spendReading({ spent: spentBy(id), held: heldBy(id), limit, period: currentMonth() })

  // The month before too: the clock may be set back. Later ones were written while it was ahead.
  for (const { organizationId, originId, month: start, spent } of await store.spend.read(
    monthOf(month.start - 1).start,
  ))
    accountOf(accountIdOf(organizationId, originId)).spent.set(start, spent)
  for (const { id, organizationId, originId, parentIds, fallbackModelId, held } of await store.spend.held()) {
    const more = fallbackModelId === null ? [] : [fallbackAccount(organizationId, fallbackModelId)]
    keep({ id, organizationId, tokenIds: [originId, ...parentIds, ...more], amount: held })
  }

  return {
    currency,
    requireAnythingLeft,

    /**
     * Holds what a job may cost until `release` or `settle`. Nothing changes for an amount of 0, and for a job that
     * holds already. `limits`: what a node may cost besides. Throws Failure `quota_exceeded`. Of a limit of a fallback no more
     * is held than is left, so that it is never exceeded.
     */
    hold(id: string, spender: Spender, amount: number, limits?: NodeLimits): void {
      if (amount <= 0 || holds.has(id)) return
      requireAnythingLeft(spender)
      const noFallback = fallbackFailure(spender, amount)
      if (noFallback) throw noFallback
      if (limits?.node !== undefined) budgets.requireNode(limits.node, amount)
      if (limits) budgets.hold(id, limits.executions, amount)
      keep({ id, organizationId: spender.organizationId, tokenIds: accountIdsOf(spender), amount })
    },

    /** The failure of a spender who has spent a whole limit, whatever running work holds; undefined otherwise. */
    spentOut(spender: Spender): Failure | undefined {
      const bound = boundsOf(spender).find(({ id, limit }) => reached(id, limit))
      return bound && refused(bound)
    },

    /** Whether this amount is left of the limit of the spender's fallback, if it has one. */
    mayFallBack: (spender: Spender, amount: number): boolean => fallbackFailure(spender, amount) === undefined,

    /**
     * Stores what a call holds of the limit of its fallback. Call it before the request leaves: if the server is killed, the
     * other side may bill what has no record here. Resolves at once if the fallback has no limit.
     */
    async storeHold(id: string, { organizationId, fallback }: Spender, amount: number): Promise<void> {
      if (!fallback || fallback.limit === null || amount <= 0) return
      storedHolds.add(id)
      await store.spend.holdFallback({ id, organizationId, modelId: fallback.modelId, held: amount })
    },

    /** Whether a job that has not ended holds anything. */
    holdsFor: (id: string): boolean => holds.has(id),

    /** The job has ended and costs nothing, or was never stored. Harmless if it holds nothing. */
    release: drop,

    /**
     * Returns, for another server, what is held now and what calls have cost whose records are `unwritten`. Calls `tell` from
     * now on with what changes.
     */
    handOver(tell: (change: SpendChange) => void, unwritten: Iterable<FinishedJob>): HandedSpend {
      told = tell
      return {
        works: [...holds].map(([id, { organizationId, tokenIds, amount }]) => ({
          id,
          organizationId,
          tokenIds,
          amount,
        })),
        loans: [...accounts].flatMap(([id, { lent, lentRunning }]) =>
          lent === 0 && lentRunning === 0 ? [] : { id, amount: lent, running: lentRunning },
        ),
        settled: costsOf(unwritten),
      }
    },
    /** Takes in what another server holds and has settled. */
    takeOver: (handed: HandedSpend) =>
      openTakenSpend(handed, { holdsFor: id => holds.has(id), keep, drop, settle, lend }),

    /** The job has ended and is billed: in the store this is one transaction. */
    settle,

    /** What is left of a limit of an organization or token, without what front processes hold. */
    left,
    /** Changes what front processes hold of the limit of an organization or token, and the part of running calls. */
    lend,

    /** The spender of a job that was accepted before; undefined if its token was removed. */
    async spenderOf(organizationId: string, tokenId: string): Promise<Spender | undefined> {
      const [organization, token] = await Promise.all([
        store.organizations.find(organizationId),
        store.tokens.find(organizationId, tokenId),
      ])
      return organization && token && spenderOf(token, plans.limitsOf(organization).monthlySpendLimit)
    },

    /** The spending of an organization in the current month, against this limit (see `EffectiveLimits`). Cheap. */
    ofOrganization: (organizationId: string, limit: number | null): SpendReading => read(organizationId, limit),
    /** The same of a token, with those that share its budget; `originId` is the first token of its rotations. */
    ofToken({
      originId,
      limits,
      parentLimits,
    }: Pick<TokenRecord, 'originId' | 'limits' | 'parentLimits'>): SpendReading {
      const own = read(originId, limits.monthlySpendLimit)
      const left = [own, ...parentLimits.map(parent => read(parent.originId, parent.monthlySpendLimit))]
        .map(({ remaining }) => remaining)
        .filter(remaining => remaining !== null)
      return { ...own, remaining: left.length === 0 ? null : Math.min(...left) }
    },
  }
}
/** What a node may cost at most, millionths of the currency unit: by its own budget, and by those of its executions. */
export interface NodeLimits {
  node: number | undefined
  executions: readonly Budget[]
}

export type Spend = Awaited<ReturnType<typeof openSpend>>

/** `2026-12-01T00:00:00Z` */
const timeText = (at: number): string => `${new Date(at).toISOString().slice(0, 19)}Z`

/** What jobs do with the money of their organizations. */
export type JobSpend = Pick<Spend, 'hold' | 'release' | 'settle' | 'mayFallBack' | 'storeHold'>

/** Where nothing has a price. */
export const noSpend: JobSpend = {
  hold() {},
  release() {},
  settle() {},
  mayFallBack: () => true,
  async storeHold() {},
}
