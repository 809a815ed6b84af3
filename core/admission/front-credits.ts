import { type Level, refilled } from '../accounts/limiter.ts'
import { type AccountLimits, type LimitedAccount, sameLimits } from './account-limits.ts'
import { addUse, type CreditMessage, type CreditRow, creditAt } from './credit-messages.ts'

/** What a front process holds of the limits of one organization or token. */
export interface FrontCredit {
  readonly id: string
  limits: AccountLimits
  version: number
  since: number
  active: boolean
  granted: { api: number; jobs: number; tokens: number; concurrent: number; amount: number }
  used: { api: number; jobs: number; tokens: number }
  open: number
  amountSince: number
  /** Of the amount: what running calls hold, what ended calls cost, and what was given back. */
  drawn: number
  cost: number
  returned: number
  /** What is left of each limit in all processes as far as this front knows: for the headers of answers only. */
  levels: Record<'api' | 'jobs' | 'tokens', Level>
  /** What this front had after the last grant. */
  sizes: { api: number; jobs: number; tokens: number; amount: number }
  /** What requests lacked, as bits of `needs`. */
  wants: number
  isChanged: boolean
  usedAt: number
  missedAt: number
  askedAt: number
}

/** A credit that nobody used for so long goes back, milliseconds. */
const idleMs = 10_000
/** A use is reported after this time if no other message takes it along. */
const reportMs = 5_000
/** Time between two looks at what is idle, between two requests for the same credit, and until half of one is refilled. */
const pauseMs = 1_000

export const unusedAmount = ({ granted, drawn, cost, returned }: FrontCredit): number =>
  granted.amount - drawn - cost - returned

/**
 * The credits of a front process and its messages with control. Of more than `maxAccounts` organizations and tokens
 * those that were not used for longest are given back.
 */
export function openFrontCredits({ now, maxAccounts }: { now: () => number; maxAccounts: number }) {
  const credits = new Map<string, FrontCredit>()
  let changed: FrontCredit[] = []
  /** Rows for recalls of credits that this front does not know. */
  let unknown: CreditMessage = { ids: [], numbers: [] }
  /** When control must be told, even if no other message is sent. */
  let dueAt = Infinity
  let sweptAt = now()

  function change(credit: FrontCredit, withinMs: number): void {
    dueAt = Math.min(dueAt, now() + withinMs)
    if (credit.isChanged) return
    credit.isChanged = true
    changed.push(credit)
  }

  function created(id: string, limits: AccountLimits): FrontCredit {
    const level = { tokens: 0, at: 0 }
    const credit: FrontCredit = {
      id,
      limits,
      version: 0,
      since: 0,
      active: false,
      granted: { api: 0, jobs: 0, tokens: 0, concurrent: 0, amount: 0 },
      used: { api: 0, jobs: 0, tokens: 0 },
      open: 0,
      amountSince: 0,
      drawn: 0,
      cost: 0,
      returned: 0,
      levels: { api: level, jobs: level, tokens: level },
      sizes: { api: 0, jobs: 0, tokens: 0, amount: 0 },
      wants: 0,
      isChanged: false,
      usedAt: now(),
      missedAt: -Infinity,
      askedAt: -Infinity,
    }
    credits.set(id, credit)
    return credit
  }

  /** Gives back what is not used; what running requests hold follows when they end. */
  function close(credit: FrontCredit): void {
    credit.active = false
    giveBackAmount(credit)
    change(credit, 0)
  }

  function giveBackAmount(credit: FrontCredit): void {
    credit.returned += Math.max(0, unusedAmount(credit))
  }

  /** The account has these limits now: a credit of others goes back. */
  function follow(credit: FrontCredit, limits: AccountLimits): void {
    if (sameLimits(credit.limits, limits)) return
    if (credit.active) close(credit)
    credit.limits = limits
    credit.askedAt = -Infinity
  }

  const isDone = ({ active, open, drawn, isChanged }: FrontCredit): boolean =>
    !active && open === 0 && drawn === 0 && !isChanged

  function sweep(at: number): void {
    sweptAt = at
    let before = at - idleMs
    if (credits.size >= maxAccounts) {
      const times = Float64Array.from(credits.values(), ({ usedAt }) => usedAt).sort()
      before = Math.max(before, times[Math.floor(times.length / 10)]!)
    }
    for (const credit of credits.values()) {
      if (credit.usedAt > before) continue
      if (credit.active) close(credit)
      else if (isDone(credit)) credits.delete(credit.id)
    }
  }

  function addRow(message: CreditMessage, credit: FrontCredit): void {
    const { id, limits, version, active, wants, used, open, drawn, amountSince, returned } = credit
    addUse(message, id, {
      limits,
      version,
      known: true,
      closed: !active,
      wants,
      ...used,
      open,
      drawn,
      amountSince,
      returned,
    })
    credit.isChanged = false
    credit.wants = 0
  }

  function grant(credit: FrontCredit, row: CreditRow, at: number): void {
    const { granted, used } = credit
    credit.limits = row.limits
    if (row.since > credit.since) {
      credit.since = row.since
      used.api = used.jobs = used.tokens = 0
    }
    if (row.amountSince > credit.amountSince) {
      credit.amountSince = row.amountSince
      credit.cost = credit.returned = 0
    }
    credit.version = row.version
    credit.active = true
    granted.api = row.api
    granted.jobs = row.jobs
    granted.tokens = row.tokens
    granted.concurrent = row.concurrent
    granted.amount = row.amount
    for (const kind of ['api', 'jobs', 'tokens'] as const) {
      credit.levels[kind] = { tokens: row.levels[kind], at }
      credit.sizes[kind] = granted[kind] - used[kind]
    }
    credit.sizes.amount = unusedAmount(credit)
  }

  /** The row says that a credit is not known here: its grant was lost, or it was closed and forgotten. */
  function disown(id: string, { limits, version }: CreditRow, credit: FrontCredit | undefined): void {
    const { open = 0, drawn = 0, amountSince = 0, returned = 0 } = credit ?? {}
    const used = { api: 0, jobs: 0, tokens: 0 }
    const row = { limits, version, known: false, closed: true, wants: 0, ...used, open, drawn, amountSince, returned }
    addUse(unknown, id, row)
    dueAt = 0
  }

  function applyRow(id: string, row: CreditRow, at: number): void {
    let credit = credits.get(id)
    const begins = row.since === row.version
    if (row.active) {
      if (!credit && !begins) return
      credit ??= created(id, row.limits)
      if (begins || credit.since === row.since) grant(credit, row, at)
    } else if (credit?.since === row.since) {
      credit.version = row.version
      close(credit)
    } else disown(id, row, credit)
  }

  return {
    /** The credit that covers an account with these limits; undefined if there is none now. */
    find({ id, limits }: Pick<LimitedAccount, 'id' | 'limits'>): FrontCredit | undefined {
      const credit = credits.get(id)
      return credit?.active && sameLimits(credit.limits, limits) ? credit : undefined
    },
    /** The credit of an account in any state. */
    get: (id: string): FrontCredit | undefined => credits.get(id),

    /** Keeps the limits of an account in mind for spending, whose amount is known later. */
    know({ id, limits }: Pick<LimitedAccount, 'id' | 'limits'>): void {
      if (limits.spend === null) return
      const credit = credits.get(id) ?? (credits.size < maxAccounts ? created(id, limits) : undefined)
      if (!credit) return
      credit.usedAt = now()
      follow(credit, limits)
    },

    /** A request had to ask control: the next message asks for a credit, unless such requests are rare. */
    lacks({ id, limits }: Pick<LimitedAccount, 'id' | 'limits'>, wants: number): void {
      const at = now()
      const known = credits.get(id)
      if (!known && credits.size >= maxAccounts) return
      const credit = known ?? created(id, limits)
      const last = credit.missedAt
      credit.missedAt = credit.usedAt = at
      follow(credit, limits)
      if (at - last > idleMs || at - credit.askedAt < pauseMs) return
      credit.askedAt = at
      credit.wants |= wants
      change(credit, 0)
    },

    /** A part of the credit was used: of `kind`, `left` is left. Control adds to it in time. */
    used(credit: FrontCredit, kind: keyof FrontCredit['sizes'], left: number): void {
      credit.usedAt = now()
      const size = credit.sizes[kind]
      if (left * 8 < size) {
        change(credit, 0)
        credit.sizes[kind] = 0
      } else change(credit, left * 2 < size ? pauseMs : reportMs)
    },
    /** Something that a request held was returned. Control waits for it if the credit was recalled. */
    returned(credit: FrontCredit): void {
      credit.usedAt = now()
      change(credit, credit.active ? reportMs : 0)
    },
    /** Of a credit that is given back, what ended calls have left over is given back too. */
    giveBackAmount,

    /** What is left of a limit in all processes, as far as this front knows. */
    level: (credit: FrontCredit, kind: 'api' | 'jobs' | 'tokens'): number =>
      refilled(credit.levels[kind], credit.limits[kind], now()),

    /**
     * What control is to be told; undefined: nothing. `alongside` another message everything is told, alone only what
     * must not wait. Cheap: call it every 50 ms.
     */
    pending(alongside: boolean): CreditMessage | undefined {
      const at = now()
      if (at - sweptAt >= pauseMs) sweep(at)
      if (changed.length === 0 && unknown.ids.length === 0) return undefined
      if (!alongside && at < dueAt) return undefined
      const message = unknown
      unknown = { ids: [], numbers: [] }
      for (const credit of changed) addRow(message, credit)
      changed = []
      dueAt = Infinity
      return message
    },

    /** Takes in a message of control. */
    apply(message: CreditMessage): void {
      const at = now()
      message.ids.forEach((id, index) => applyRow(id, creditAt(message, index), at))
    },

    size: (): number => credits.size,
  }
}
export type FrontCredits = ReturnType<typeof openFrontCredits>
