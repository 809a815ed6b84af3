import { monthOf } from '../month.ts'
import type { FinishedJob } from '../store/store.ts'
import type { Settlement } from './spend.ts'

/** What work holds: plain data, for another server. */
export interface HeldWork {
  id: string
  organizationId: string
  /** The accounts of its token, of those whose budgets it shares, and of the fallback that does it. */
  tokenIds: readonly string[]
  /** Millionths of the currency unit. */
  amount: number
}

/** What gateway processes hold of the limit of an organization or token, and the part of it that running calls hold. */
export interface Loan {
  id: string
  amount: number
  running: number
}

/** All that a server holds: plain data. */
export interface HandedSpend {
  works: HeldWork[]
  loans: Loan[]
  /** What calls have cost whose records are not in the store yet, summed up. */
  settled: Settlement[]
}

/** Work has begun, or it has ended, not billed if the settlement is null, or a loan has grown or shrunk by so much. */
export type SpendChange =
  | ({ kind: 'held' } & HeldWork)
  | { kind: 'ended'; id: string; settlement: Settlement | null }
  | ({ kind: 'lent' } & Loan)

/** Sums up what finished calls have cost, by token, fallback and month. */
export function costsOf(calls: Iterable<FinishedJob>): Settlement[] {
  const sums = new Map<string, Settlement>()
  for (const { organizationId, tokenId, modelId, fallbackReason, cost, finishedAt } of calls) {
    if (cost <= 0) continue
    const fallbackModelId = fallbackReason ? modelId : undefined
    const name = `${tokenId} ${monthOf(finishedAt).start} ${fallbackModelId ?? ''}`
    const sum = sums.get(name)
    if (sum) sum.cost += cost
    else sums.set(name, { organizationId, tokenId, fallbackModelId, cost, finishedAt })
  }
  return [...sums.values()]
}

/** The holds of the server that takes over. */
interface OwnHolds {
  holdsFor: (id: string) => boolean
  keep: (work: HeldWork) => void
  drop: (id: string) => void
  settle: (id: string, settlement: Settlement) => void
  lend: (id: string, amount: number, running: number) => void
}

/** Takes in what another server holds and has settled. Stored jobs hold already. */
export function openTakenSpend({ works, loans, settled }: HandedSpend, own: OwnHolds) {
  /** What is held for work of that server. */
  const taken = new Set<string>()
  const left = new Map<string, Loan>()
  let isOver = false

  function take(work: HeldWork): void {
    if (own.holdsFor(work.id)) return
    own.keep(work)
    taken.add(work.id)
  }

  function change(one: SpendChange): void {
    if (one.kind === 'held') take(one)
    else if (one.kind === 'lent') {
      const { amount = 0, running = 0 } = left.get(one.id) ?? {}
      left.set(one.id, { id: one.id, amount: amount + one.amount, running: running + one.running })
      own.lend(one.id, one.amount, one.running)
    } else if (one.settlement) own.settle(one.id, one.settlement)
    else own.drop(one.id)
  }

  for (const settlement of settled) own.settle('', settlement)
  for (const work of works) take(work)
  for (const loan of loans) change({ kind: 'lent', ...loan })

  return {
    /** Takes in what changes there. */
    change,
    /**
     * That server stores jobs here: they hold until their ends, whenever it ends. Call what is returned with those that are
     * not stored after all.
     */
    storing(ids: readonly string[]): (refused: readonly string[]) => void {
      const stored = new Set(ids.filter(id => taken.delete(id)))
      return refused => {
        for (const id of refused) {
          if (!stored.has(id)) continue
          // Until its end that server says itself what it does not hold any more.
          if (isOver) own.drop(id)
          else taken.add(id)
        }
      }
    },
    /** That server has ended: it holds nothing any more. */
    ended(): void {
      isOver = true
      for (const id of taken) own.drop(id)
      for (const { id, amount, running } of left.values()) own.lend(id, -amount, -running)
    },
  }
}
