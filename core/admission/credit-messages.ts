import type { AccountLimits } from './account-limits.ts'

/**
 * A message between the control process and a front: for each of `ids`, an organization or token, a row of `numbers`.
 * Flat, because it is copied between processes.
 */
export interface CreditMessage {
  ids: string[]
  numbers: number[]
}

/** What a front needs of the limits of an account, as bits. */
export const needs = { api: 1, jobs: 2, concurrent: 4, tokens: 8, spend: 16 } as const

/**
 * The credit of a front, as control grants it. Amounts are sums since the beginning of the credit, so that a lost message is
 * made good by the next.
 */
export interface CreditRow {
  limits: AccountLimits
  /** Rises with every message about any credit. */
  version: number
  /** The version with which the permits and tokens began. A front that missed it ignores what follows. */
  since: number
  /** The version with which the amount began. */
  amountSince: number
  /** False: the credit is recalled. */
  active: boolean
  api: number
  jobs: number
  tokens: number
  /** The requests that may be open in the front. */
  concurrent: number
  /** Millionths of the currency unit. */
  amount: number
  /** What was left of each limit in all processes, for the headers of answers. */
  levels: { api: number; jobs: number; tokens: number }
}

/** What a front has used of a credit. */
export interface UseRow {
  limits: AccountLimits
  /** The newest version that the front has seen; 0 if it has no credit. */
  version: number
  /** False if the front does not know the credit that is recalled: it may have used all of its permits. */
  known: boolean
  /** The front uses no more of it, beyond what is open and drawn. */
  closed: boolean
  /** A sum of `needs`: what a request lacked. */
  wants: number
  api: number
  jobs: number
  tokens: number
  /** Requests that are open in the front. */
  open: number
  /** What running calls hold of the amount. */
  drawn: number
  amountSince: number
  /** What the front gave back of the amount. */
  returned: number
}

const pushLimits = (numbers: number[], { api, jobs, concurrent, tokens, spend }: AccountLimits): void =>
  void numbers.push(api, jobs, concurrent, tokens, spend ?? -1)

const limitsAt = (numbers: readonly number[], at: number): AccountLimits => ({
  api: numbers[at]!,
  jobs: numbers[at + 1]!,
  concurrent: numbers[at + 2]!,
  tokens: numbers[at + 3]!,
  spend: numbers[at + 4] === -1 ? null : numbers[at + 4]!,
})

/** Numbers of a row of a message of grants. */
const creditWidth = 17
/** Numbers of a row of a message of uses. */
const useWidth = 16

export function addCredit({ ids, numbers }: CreditMessage, id: string, row: CreditRow): void {
  ids.push(id)
  pushLimits(numbers, row.limits)
  numbers.push(row.version, row.since, row.amountSince, row.active ? 1 : 0)
  numbers.push(row.api, row.jobs, row.tokens, row.concurrent, row.amount)
  numbers.push(row.levels.api, row.levels.jobs, row.levels.tokens)
}

export const creditAt = ({ numbers }: CreditMessage, index: number): CreditRow => {
  const at = index * creditWidth
  const [version, since, amountSince, active, api, jobs, tokens, concurrent, amount, ...levels] = numbers.slice(
    at + 5,
    at + creditWidth,
  ) as [number, number, number, number, number, number, number, number, number, number, number, number]
  return {
    limits: limitsAt(numbers, at),
    version,
    since,
    amountSince,
    active: active === 1,
    api,
    jobs,
    tokens,
    concurrent,
    amount,
    levels: { api: levels[0], jobs: levels[1], tokens: levels[2] },
  }
}

export function addUse({ ids, numbers }: CreditMessage, id: string, row: UseRow): void {
  ids.push(id)
  pushLimits(numbers, row.limits)
  numbers.push(row.version, row.known ? 1 : 0, row.closed ? 1 : 0, row.wants)
  numbers.push(row.api, row.jobs, row.tokens, row.open, row.drawn, row.amountSince, row.returned)
}

export const useAt = ({ numbers }: CreditMessage, index: number): UseRow => {
  const at = index * useWidth
  const [version, known, closed, wants, api, jobs, tokens, open, drawn, amountSince, returned] = numbers.slice(
    at + 5,
    at + useWidth,
  ) as [number, number, number, number, number, number, number, number, number, number, number]
  return {
    limits: limitsAt(numbers, at),
    version,
    known: known === 1,
    closed: closed === 1,
    wants,
    api,
    jobs,
    tokens,
    open,
    drawn,
    amountSince,
    returned,
  }
}
