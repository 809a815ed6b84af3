import fc from 'fast-check'
import { expect, test } from 'vitest'
import { anyGraph, type Graph, interpreted } from './_interpreter.ts'
import { openMachine } from './_machine.ts'

/** Runs a graph to its end. `before`: called before each step with its number. */
function run(
  graph: Graph,
  slots: number,
  draw: Iterator<number>,
  before: (machine: ReturnType<typeof openMachine>, step: number, pick: (below: number) => number) => void,
) {
  let steps = 0
  // Shrinking may draw what would requeue for ever.
  const pick = (below: number) => (steps > 2_000 ? below - 1 : draw.next().value! % below)
  const machine = openMachine(graph, slots, below => (below === 2 && steps > 2_000 ? 0 : pick(below)))
  for (let idle = 0; idle < 50; steps++) {
    before(machine, steps, pick)
    idle = machine.go() ? 0 : idle + 1
    if (machine.open().length === 0) break
  }
  expect(machine.open(), 'nothing is stuck').toEqual([])
  expect(machine.running()).toEqual([])
  for (const { ends, state, jobs } of machine.all) expect([ends, jobs.size]).toEqual([[state.status], 0])
  return machine
}

const draws = fc.infiniteStream(fc.nat())
const slotCounts = fc.integer({ min: 1, max: 3 })

test('lists, conditions, waits and nested executions end as the rules say, on any number of slots, through crashes', () => {
  fc.assert(
    fc.property(anyGraph, slotCounts, draws, (graph, slots, draw) => {
      const { first } = run(graph, slots, draw, (machine, _, pick) => pick(12) === 0 && machine.crash())
      const { nodes, status } = interpreted(graph)
      expect(first.state.status).toBe(status)
      if (graph.onFailure === 'continue' || status === 'completed') expect(first.state.nodes).toEqual(nodes)
    }),
    { numRuns: 1_000 },
  )
})

test('wherever an execution is cancelled or times out, it and those within it end once, and nothing goes on', () => {
  const stops = fc.array(fc.nat(40), { minLength: 1, maxLength: 3 })
  fc.assert(
    fc.property(anyGraph, slotCounts, draws, stops, (graph, slots, draw, at) => {
      const { first } = run(graph, slots, draw, (machine, step, pick) => {
        const open = machine.open()
        if (!at.includes(step) || open.length === 0) return
        machine.stop(open[pick(open.length)]!, pick(2) === 0 ? 'cancelled' : 'timed_out')
      })
      expect(first.state.nodes).not.toContain('pending')
    }),
    { numRuns: 1_000 },
  )
})
