import type { Failure } from '../failure.ts'
import { needs } from './credit-messages.ts'
import { type FrontCredit, type FrontCredits, unusedAmount } from './front-credits.ts'
import type { JobSpend, Settlement, Spend } from './spend.ts'
import { boundsOf, type Spender } from './spender.ts'

interface Draw {
  credits: readonly FrontCredit[]
  amount: number
}

/**
 * The spend limits in a front process. Calls hold what they may cost of the amounts that control has granted. Unlike in
 * one process a call must fit wholly: otherwise each front could exceed a limit by its last hold.
 */
export function openFrontSpend(credits: FrontCredits, askControl: Failure) {
  /** By id of the call. */
  const draws = new Map<string, Draw>()

  /** The credits that a spender draws from; undefined if one of them has less than `least` left. */
  function covering(spender: Spender, least: number): FrontCredit[] | undefined {
    const found: FrontCredit[] = []
    let all = true
    for (const { id, limit } of boundsOf(spender)) {
      const credit = credits.get(id)
      if (limit === null) {
        // A call that goes on with another model is not refused, but its cost comes from the same amounts.
        if (credit && credit.granted.amount > 0) found.push(credit)
      } else if (credit?.active && credit.limits.spend === limit && unusedAmount(credit) >= least) found.push(credit)
      else {
        if (credit?.limits.spend === limit) credits.lacks(credit, needs.spend)
        all = false
      }
    }
    return all ? found : undefined
  }

  function end(id: string, cost: number): void {
    const draw = draws.get(id)
    if (!draw) return
    draws.delete(id)
    for (const credit of draw.credits) {
      credit.drawn -= draw.amount
      credit.cost += cost
      if (!credit.active) credits.giveBackAmount(credit)
      credits.returned(credit)
    }
  }

  const spentOut = (spender: Spender): Failure | undefined => (covering(spender, 1) ? undefined : askControl)

  return {
    /** Throws `askControl` if nothing is granted of a limit. */
    requireAnythingLeft(spender: Spender): void {
      if (spentOut(spender)) throw askControl
    },
    /** `askControl` if nothing is granted of a limit. */
    spentOut,
    /** Whether a call that has not ended holds anything. */
    holdsFor: (id: string): boolean => draws.has(id),
    /** Holds what a call may cost until `release` or `settle`. Throws `askControl` if it does not fit what is granted. */
    hold(id: string, spender: Spender, amount: number): void {
      if (amount <= 0 || draws.has(id)) return
      const found = covering(spender, amount)
      if (!found) throw askControl
      if (found.length === 0) return
      for (const credit of found) {
        credit.drawn += amount
        credits.used(credit, 'amount', unusedAmount(credit))
      }
      draws.set(id, { credits: found, amount })
    },
    /** The call has ended and costs nothing. Harmless if it holds nothing. */
    release: (id: string): void => end(id, 0),
    /** The call has ended and is billed. Send its record before or with the next message of the credits. */
    settle: (id: string, { cost }: Pick<Settlement, 'cost'>): void => end(id, Math.max(0, cost)),
  } satisfies Pick<JobSpend, 'hold' | 'release' | 'settle'> &
    Pick<Spend, 'requireAnythingLeft' | 'spentOut' | 'holdsFor'>
}
