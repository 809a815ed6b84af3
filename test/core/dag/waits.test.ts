import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { ExecutionInput } from '../../../core/dag/advance.ts'
import { advanceState } from '../../../core/dag/advance-state.ts'
import {
  type ExecutionPlan,
  type ExecutionState,
  isOver,
  newState,
  restoredState,
} from '../../../core/dag/execution-state.ts'

const planOf = (
  successors: number[][],
  { onFailure = 'fail_fast', onError = [] }: { onFailure?: ExecutionPlan['onFailure']; onError?: string[] } = {},
): ExecutionPlan => ({
  onFailure,
  timeoutMs: 1_000,
  nodes: successors.map((after, node) => ({
    modelId: 'm',
    direct: true,
    successors: after,
    predecessors: successors.filter(others => others.includes(node)).length,
    onError: onError[node] === 'continue' ? 'continue' : 'fail',
  })),
})

/** An execution whose inputs come one after another, each a millisecond later. */
function openExecution(plan: ExecutionPlan) {
  const state = newState(plan)
  let at = 0
  return {
    state,
    step: (
      input: ExecutionInput extends infer One ? (One extends ExecutionInput ? Omit<One, 'at'> : never) : never,
      later = 1,
    ) => {
      at += later
      return advanceState(plan, state, { ...input, at })
    },
  }
}
const setAside = (node: number) => ({ type: 'job_set_aside', node }) as const
const ended = (node: number, status: 'completed' | 'failed' = 'completed') =>
  ({ type: 'job_ended', node, status, ran: false, waited: true }) as const

test('a wait at the beginning starts the execution and its time limit', () => {
  const { step, state } = openExecution(planOf([[1], []]))
  step({ type: 'created' })
  expect(step(setAside(0))).toEqual([
    { write: 'node', node: 0, status: 'waiting' },
    { write: 'count', by: { waiting: 1 } },
    { write: 'start', timeoutAt: 1_002 },
    { write: 'event', event: 'started', node: null },
    { write: 'announce', ended: false, timeoutAt: 1_002 },
    { write: 'clock', clock: { timeoutAt: null, remainingMs: 1_000 } },
  ])
  expect(step(ended(0), 5_000)).toEqual([
    { write: 'count', by: { running: 0, waiting: -1, completed: 1 } },
    { write: 'node', node: 0, status: 'completed' },
    { write: 'create_job', node: 1, takesSlotOf: null },
    { write: 'announce', ended: false, timeoutAt: undefined },
    { write: 'clock', clock: { timeoutAt: 6_002, remainingMs: null } },
  ])
  expect(step(ended(0, 'failed'))).toEqual([])
  expect(state.nodes).toEqual(['completed', 'ready'])
})

test.for([
  ['cancelled', ['cancelled', 'cancelled'], { running: 0, failed: 0, skipped: 2, waiting: -1 }],
  ['timed_out', ['timed_out', 'cancelled'], { running: 0, failed: 1, skipped: 1, waiting: -1 }],
] as const)('an execution that is %s ends its wait', ([type, nodes, by]) => {
  const { step, state } = openExecution(planOf([[1], []]))
  step({ type: 'created' })
  step(setAside(0))
  const writes = step({ type })
  expect(writes).toContainEqual({ write: 'withdraw_job', node: 0 })
  expect(writes).toContainEqual({ write: 'count', by })
  expect(state.nodes).toEqual(nodes)
})

test('a failure beside it skips a wait, which nobody needs to answer any more', () => {
  const { step, state } = openExecution(planOf([[], []]))
  step({ type: 'created' })
  step(setAside(0))
  const writes = step({ ...ended(1, 'failed'), waited: false })
  expect(writes).toContainEqual({ write: 'withdraw_job', node: 0 })
  expect(writes).toContainEqual({ write: 'count', by: { skipped: 1, waiting: -1 } })
  expect(state).toMatchObject({ nodes: ['skipped', 'failed'], status: 'failed', open: 0 })
})

test('but not where the others go on', () => {
  const { step, state } = openExecution(planOf([[], []], { onFailure: 'continue' }))
  step({ type: 'created' })
  step(setAside(0))
  step({ ...ended(1, 'failed'), waited: false })
  expect(state).toMatchObject({ nodes: ['waiting', 'failed'], status: 'running' })
  step(ended(0))
  expect(state).toMatchObject({ status: 'failed', open: 0 })
})

test('the time limit stops only while nothing is queued or runs, and goes on with what is left of it', () => {
  const { step, state } = openExecution(planOf([[], []]))
  const clocks = [
    { type: 'created' },
    { type: 'job_started', node: 1 },
    setAside(0),
    { type: 'job_requeued', node: 1 },
    { ...setAside(1), busy: true },
    { type: 'nested_changed', node: 1, item: null, busy: false },
    { type: 'nested_changed', node: 1, item: null, busy: true },
    ended(0),
    { type: 'nested_changed', node: 1, item: null, busy: false },
    ended(1),
  ].map(input => {
    step(input as Parameters<typeof step>[0], 100)
    return [state.clock.timeoutAt, state.clock.remainingMs]
  })
  expect(clocks).toEqual([
    [null, null],
    [1_200, null],
    [1_200, null],
    [1_200, null],
    [1_200, null],
    [null, 600],
    [1_300, null],
    [1_300, null],
    [null, 400],
    [1_400, null],
  ])
})

test('a time limit that has passed does not stop any more', () => {
  const { step, state } = openExecution(planOf([[], []]))
  step({ type: 'created' })
  step({ type: 'job_started', node: 1 })
  step(setAside(0))
  step({ ...ended(1), ran: true, waited: false }, 1_000)
  expect(state.clock).toEqual({ timeoutAt: 1_002, remainingMs: null })
})

test('a node that begins to wait after a failure is skipped, because nobody needs the answer', () => {
  const { step, state } = openExecution(planOf([[], [], []]))
  for (const input of [{ type: 'created' }, { type: 'job_started', node: 0 }, { type: 'job_started', node: 2 }])
    step(input as Parameters<typeof step>[0])
  step({ ...setAside(1), busy: true })
  step({ ...ended(0, 'failed'), ran: true, waited: false })
  expect(state.nodes).toEqual(['failed', 'skipped', 'running'])
  step({ type: 'job_requeued', node: 2 })
  expect(step(setAside(2))).toContainEqual({ write: 'withdraw_job', node: 2 })
  expect(state).toMatchObject({ nodes: ['failed', 'skipped', 'skipped'], status: 'failed', open: 0 })
})

/** Graphs of up to ten nodes. */
const plans = fc
  .record({
    size: fc.integer({ min: 1, max: 10 }),
    edges: fc.array(fc.tuple(fc.nat(9), fc.nat(9)), { maxLength: 20, size: 'max' }),
    onFailure: fc.constantFrom('fail_fast' as const, 'continue' as const),
    onError: fc.array(fc.constantFrom('fail', 'continue'), { minLength: 10, maxLength: 10 }),
  })
  .map(({ size, edges, ...more }) =>
    planOf(
      Array.from({ length: size }, (_, from) => [
        ...new Set(edges.filter(([a, b]) => a === from && a < b && b < size).map(([, to]) => to)),
      ]),
      more,
    ),
  )

const countedIn = ({ nodes }: ExecutionState) => {
  const many = (...those: string[]) => nodes.filter(node => those.includes(node)).length
  return {
    running: many('running'),
    waiting: many('waiting'),
    completed: many('completed'),
    failed: many('failed', 'timed_out'),
    skipped: many('skipped', 'cancelled'),
  }
}

test('whatever waits and for however long, each node ends once, counts are right, and stored rows restore the state', () => {
  const stops = fc.option(fc.constantFrom('cancelled' as const, 'timed_out' as const))
  fc.assert(
    fc.property(plans, fc.infiniteStream(fc.nat(1_000)), stops, fc.nat(40), (plan, picks, stop, stopAfter) => {
      const { step, state } = openExecution(plan)
      const pick = () => picks.next().value!
      const counted = { running: 0, waiting: 0, completed: 0, failed: 0, skipped: 0 }
      const changedAt = plan.nodes.map(() => 0)
      let [at, ends] = [0, 0]
      // The rule of the time limit, said as simply as possible: it counts while a node is queued, runs or awaits such work.
      let spent: number | undefined
      const counts = () => state.nodes.some((now, node) => now === 'ready' || now === 'running' || state.busy.has(node))
      const take = (given: Parameters<typeof step>[0]) => {
        const before = [...state.nodes]
        const later = 1 + (pick() % 9)
        at += later
        if (spent !== undefined && counts()) spent += later
        const writes = step(given, later)
        if (writes.some(({ write }) => write === 'start')) spent = 0
        for (const one of writes) {
          if (one.write === 'end') ends++
          if (one.write === 'node') {
            changedAt[one.node] = at
            expect(isOver(before[one.node]!)).toBe(false)
          }
          if (one.write === 'withdraw_job') expect(['ready', 'waiting', 'running']).toContain(before[one.node])
          if (one.write !== 'count') continue
          for (const name of Object.keys(counted) as (keyof typeof counted)[]) counted[name] += one.by[name] ?? 0
        }
        expect(counted).toEqual(countedIn(state))
        const { timeoutAt, remainingMs } = state.clock
        expect(remainingMs !== null).toBe(state.nodes.includes('waiting') && !counts())
        expect(remainingMs ?? (timeoutAt === null ? null : timeoutAt - at)).toBe(
          spent === undefined ? null : plan.timeoutMs - spent,
        )
        const rows = state.nodes.map((status, node) => ({ status, at: changedAt[node]!, busy: state.busy.has(node) }))
        expect(restoredState(plan, { status: state.status, clock: state.clock, nodes: rows })).toEqual(state)
      }
      take({ type: 'created' })
      for (let steps = 0; ; steps++) {
        const live = [...state.nodes.keys()].filter(node =>
          ['ready', 'running', 'waiting'].includes(state.nodes[node]!),
        )
        if (live.length === 0) break
        if (stop && steps === stopAfter) take({ type: stop })
        else {
          const node = live[pick() % live.length]!
          const now = state.nodes[node]!
          const status = pick() % 3 === 0 ? 'failed' : 'completed'
          if (now === 'ready' && pick() % 2 === 0) take({ ...setAside(node), busy: pick() % 2 === 0 })
          else if (now === 'waiting' && pick() % 2 === 0)
            take({ type: 'nested_changed', node, item: null, busy: !state.busy.has(node) })
          else if (now === 'ready') take({ type: 'job_started', node })
          else take({ type: 'job_ended', node, status, ran: now === 'running', waited: now === 'waiting' })
        }
      }
      expect([state.open, ends]).toEqual([0, 1])
    }),
    { numRuns: 500 },
  )
})
