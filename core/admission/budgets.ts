import { Failure } from '../failure.ts'
import { moneyText } from '../money-text.ts'

/** The most that an execution may cost, and what its ended work has cost, in millionths of the currency unit. */
export interface Budget {
  executionId: string
  limit: number
  spent: number
}

/** An execution of which work runs. */
interface Account {
  spent: number
  held: number
  /** How many jobs hold something of it. */
  jobs: number
}

/**
 * The budgets of executions, in memory: what their running nodes hold. An execution of which nothing runs is forgotten, and
 * read again with its next node.
 */
export function openBudgets(currency: string) {
  const accounts = new Map<string, Account>()
  /** By job id. */
  const holds = new Map<string, { executionIds: readonly string[]; amount: number }>()
  const text = (millionths: number) => `${moneyText(millionths / 1e6)} ${currency}`

  return {
    /**
     * Holds what a job may cost of the budgets of its execution and of those around it, until `end`. Throws Failure
     * `quota_exceeded` if it is more than is left of one.
     */
    hold(jobId: string, budgets: readonly Budget[], amount: number): void {
      if (budgets.length === 0) return
      for (const { executionId, limit, spent: stored } of budgets) {
        const { spent, held } = accounts.get(executionId) ?? { spent: stored, held: 0 }
        if (spent + held + amount <= limit) continue
        const running = held > 0 ? `, and running nodes hold ${text(held)}` : ''
        throw new Failure(
          'quota_exceeded',
          `This node may cost ${text(amount)}, more than is left of the budget of ${text(limit)} of the execution ${executionId}: ${text(spent)} is spent${running}. Raise the budget, or let the node do less.`,
        )
      }
      for (const { executionId, spent } of budgets) {
        const account = accounts.get(executionId) ?? { spent, held: 0, jobs: 0 }
        accounts.set(executionId, account)
        account.held += amount
        account.jobs++
      }
      holds.set(jobId, { executionIds: budgets.map(one => one.executionId), amount })
    },

    /** The job has ended and has cost this. Harmless if it holds nothing. */
    end(jobId: string, cost: number): void {
      const hold = holds.get(jobId)
      if (!hold) return
      holds.delete(jobId)
      for (const id of hold.executionIds) {
        const account = accounts.get(id)!
        account.held -= hold.amount
        account.spent += cost
        if (--account.jobs === 0) accounts.delete(id)
      }
    },

    /** Throws Failure `quota_exceeded` for a node that may cost more than its own budget. */
    requireNode(limit: number, amount: number): void {
      if (amount > limit)
        throw new Failure(
          'quota_exceeded',
          `This node may cost ${text(amount)}, more than its budget of ${text(limit)}. Raise the budget, or let the node do less.`,
        )
    },
  }
}
