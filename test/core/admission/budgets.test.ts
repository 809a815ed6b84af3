import fc from 'fast-check'
import { expect, test } from 'vitest'
import { openBudgets } from '../../../core/admission/budgets.ts'

const euro = 1_000_000

test('a node that may cost more than is left does not begin, and the sentence has the figures', () => {
  const budgets = openBudgets('EUR')
  const budget = { executionId: 'exec_1', limit: 10 * euro, spent: 6 * euro }
  budgets.hold('a', [budget], 3 * euro)
  expect(() => budgets.hold('b', [budget], 2 * euro)).toThrow(
    'This node may cost 2.00 EUR, more than is left of the budget of 10.00 EUR of the execution exec_1: 6.00 EUR is spent, and running nodes hold 3.00 EUR. Raise the budget, or let the node do less.',
  )
  budgets.hold('c', [budget], euro)
  budgets.end('a', 2 * euro)
  // What is stored may lag behind, or not.
  budgets.hold('d', [budget], euro)
  expect(() => budgets.hold('e', [budget], 1)).toThrow('8.00 EUR is spent, and running nodes hold 2.00 EUR')
})

test('the budget of an execution around it holds too, and a refusal holds nothing', () => {
  const budgets = openBudgets('EUR')
  const outer = { executionId: 'exec_outer', limit: 2 * euro, spent: 0 }
  const inner = { executionId: 'exec_inner', limit: 5 * euro, spent: 0 }
  expect(() => budgets.hold('a', [inner, outer], 3 * euro)).toThrow('exec_outer: 0.00 EUR is spent.')
  budgets.hold('b', [inner], 5 * euro)
  budgets.hold('c', [outer], 2 * euro)
})

test('a node with a budget of its own may cost as much, and no more', () => {
  const budgets = openBudgets('EUR')
  budgets.requireNode(euro, euro)
  expect(() => budgets.requireNode(euro, 2 * euro)).toThrow(
    'This node may cost 2.00 EUR, more than its budget of 1.00 EUR.',
  )
})

test('whatever begins and ends, what is spent and held never passes the budget', () => {
  const steps = fc.array(fc.record({ begins: fc.boolean(), pick: fc.nat(), amount: fc.integer({ min: 1, max: 40 }) }))
  fc.assert(
    fc.property(steps, fc.integer({ min: 1, max: 100 }), (all, limit) => {
      const budgets = openBudgets('EUR')
      const running = new Map<string, number>()
      let spent = 0
      for (const [at, { begins, pick, amount }] of all.entries()) {
        const held = [...running.values()].reduce((sum, one) => sum + one, 0)
        expect(spent + held).toBeLessThanOrEqual(limit)
        const [id, holds] = [...running][pick % Math.max(1, running.size)] ?? []
        if (begins) {
          const begin = () => budgets.hold(`job ${at}`, [{ executionId: 'exec_1', limit, spent }], amount)
          if (spent + held + amount > limit) expect(begin).toThrow()
          else {
            begin()
            running.set(`job ${at}`, amount)
          }
        } else if (id !== undefined) {
          const cost = pick % (holds! + 1)
          budgets.end(id, cost)
          running.delete(id)
          spent += cost
        }
      }
    }),
  )
})
