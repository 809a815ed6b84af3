import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { advance, type ExecutionInput, type ExecutionWrite } from '../../../core/dag/advance.ts'
import { advanceState } from '../../../core/dag/advance-state.ts'
import {
  applyWrites,
  type Clock,
  type ExecutionPlan,
  type ExecutionState,
  isOver,
  newState,
  type PlannedItems,
  restoredState,
  type StoredNode,
} from '../../../core/dag/execution-state.ts'

type Untimed<Input = ExecutionInput> = Input extends ExecutionInput ? Omit<Input, 'at'> : never

const node = (more: Partial<ExecutionPlan['nodes'][number]> = {}): ExecutionPlan['nodes'][number] => ({
  modelId: 'm',
  direct: false,
  successors: [],
  predecessors: 0,
  onError: 'fail',
  ...more,
})
const items = (more: Partial<PlannedItems> = {}): PlannedItems => ({
  parallel: 2,
  onError: 'fail',
  direct: true,
  ...more,
})

/** A node with items, node 0, and one after it, node 1. */
const planOf = (more: Partial<PlannedItems> = {}, onError: 'fail' | 'continue' = 'fail'): ExecutionPlan => ({
  onFailure: 'fail_fast',
  timeoutMs: 1_000,
  nodes: [node({ items: items(more), successors: [1], onError }), node({ predecessors: 1 })],
})

/**
 * The input of a step: `3` items are known, `0~` item 0 starts, `0^` is requeued, `0+` completes, `0!` fails, `0s` completes
 * and keeps a slot, `.` the results are gathered, `@` all is cancelled, `@@` times out.
 */
function inputOf(step: string): Untimed {
  if (step === '@') return { type: 'cancelled' }
  if (step === '@@') return { type: 'timed_out' }
  if (step === '.') return { type: 'job_ended', node: 0, status: 'completed', ran: false }
  if (step === '>') return { type: 'job_started', node: 0 }
  if (step === '<') return { type: 'job_requeued', node: 0 }
  if (step === 'x') return { type: 'job_ended', node: 0, status: 'cancelled', ran: false }
  const number = Number.parseInt(step, 10)
  const sign = step.at(-1)!
  if (/\d/.test(sign)) return { type: 'list_known', node: 0, count: number }
  if (sign === '~') return { type: 'item_started', node: 0, item: number }
  if (sign === '^') return { type: 'item_requeued', node: 0, item: number }
  const status = sign === '!' ? 'failed' : 'completed'
  return { type: 'item_ended', node: 0, item: number, status, ...(sign === 's' ? { slotOf: 'm' } : {}) }
}

/** One write in short; empty for those that the table does not show. */
function shown(one: ExecutionWrite): string[] {
  if (one.write === 'create_item') return [`+${one.item}${one.takesSlot ? 's' : ''}`]
  if (one.write === 'withdraw_item') return [`-${one.item}`]
  if (one.write === 'create_job' && one.node === 1) return ['next']
  if (one.write === 'gather' || one.write === 'fail_job' || one.write === 'start') return [one.write]
  if (one.write === 'end') return [one.status]
  return []
}

test.for<[title: string, steps: string, followed: string, more?: Partial<PlannedItems>, onError?: 'continue']>([
  ['items get jobs in order, as many as may run', '4 0~ 1~ 1+ 0+', '+0 +1, start, , +2, +3'],
  ['the results are gathered after the last', '2 0~ 1~ 1+ 0+ .', '+0 +1, start, , , gather, next'],
  ['a list shorter than the window', '1 0~ 0+ .', '+0, start, gather, next', { parallel: 5 }],
  ['an empty list is gathered at once, and starts the execution', '0 .', 'gather, start next'],
  ['an item that is told to end twice', '3 0+ 0+ 0!', '+0 +1, +2, , '],
  ['an item that waits again', '3 0~ 0^ 0~ 0+', '+0 +1, start, , , +2'],
  ['the first failure cancels the others', '5 0~ 1~ 0!', '+0 +1, start, , -1 fail_job failed'],
  ['items that fail late change nothing', '5 0~ 1~ 0! 1!', '+0 +1, start, , -1 fail_job failed, '],
  ['failures may be continued', '3 0! 1! 2! .', '+0 +1, +2, , gather, start next', { onError: 'continue' }],
  ['a failed node may be continued', '3 0!', '+0 +1, -1 fail_job next', {}, 'continue'],
  ['the next item takes the slot', '3 0~ 0s 1s', '+0 +1, start, +2s, '],
  ['but not where a stored result has to be looked for', '3 0~ 0s', '+0 +1, start, +2', { direct: false }],
  ['a cancelled execution cancels its items', '3 0~ @ 0+ .', '+0 +1, start, -0 -1 cancelled, , '],
  ['so does its time limit', '3 0~ @@ 0+ .', '+0 +1, start, -0 -1 timed_out, , '],
  ['and the end of the node from outside', '3 0~ x 0+', '+0 +1, start, -0 -1 failed, '],
])('%s', ([, steps, followed, more, onError]) => {
  const plan = planOf(more, onError)
  const state = newState(plan)
  const all = [{ type: 'created' } as const, ...steps.split(' ').map(inputOf)].map((input, at) => {
    const before = structuredClone(state)
    const writes = advance(plan, state, { ...input, at })
    expect(state).toEqual(before)
    applyWrites(plan, state, writes, at)
    return writes.flatMap(shown).join(' ')
  })
  expect(all.slice(1).join(', ')).toBe(followed)
})

/** Node 0 with items, whose own job starts with `>` and is requeued with `<`, and node 1 beside it, whose failure is `!`. */
function besideFailure(steps: string, more: Partial<PlannedItems> = {}) {
  const plan: ExecutionPlan = {
    onFailure: 'fail_fast',
    timeoutMs: 1_000,
    nodes: [node({ items: items(more) }), node()],
  }
  const state = newState(plan)
  const inputs: Untimed[] = [
    { type: 'created' },
    ...steps
      .split(' ')
      .map(
        (step): Untimed => (step === '!' ? { type: 'job_ended', node: 1, status: 'failed', ran: true } : inputOf(step)),
      ),
  ]
  applyWrites(plan, state, advance(plan, state, { type: 'job_started', node: 1, at: 0 }), 0)
  const all = inputs.map((input, at) => {
    const writes = advance(plan, state, { ...input, at })
    applyWrites(plan, state, writes, at)
    const own = writes.flatMap(one =>
      one.write === 'node' && one.node === 0 && isOver(one.status) ? [one.status] : shown(one),
    )
    return own.join(' ')
  })
  return { followed: all.slice(2).join(', '), state }
}

test.for<[title: string, steps: string, followed: string, more?: Partial<PlannedItems>]>([
  ['the items that run end, and the others never start', '5 0~ ! 0+', ', -1, skipped failed'],
  ['also with the slot of the last one', '5 0~ 1~ ! 0s 1s', ', , , , skipped failed'],
  ['a list of which no item runs is skipped at once', '5 0~ 0^ !', ', , -0 -1 skipped failed'],
  ['a list of which all items run or have ended completes', '2 0~ 1~ 0+ ! 1+ .', ', , , , gather, completed failed'],
  ['and one whose results are being gathered', '1 0~ 0+ ! .', ', gather, , completed failed'],
  ['but not with an item that was cancelled', '2 0~ ! 0+', ', -1, skipped failed'],
  ['an item that is requeued runs again', '5 0~ ! 0^ 0~ 0+', ', -1, , , skipped failed'],
  ['an item that fails fails the node', '5 0~ 1~ ! 0!', ', , , -1 fail_job failed failed'],
  ['unless its failure is continued', '5 0~ ! 0!', ', -1, skipped failed', { onError: 'continue' }],
  ['a list that becomes known is skipped', '> ! < 5', ', , skipped failed'],
  ['an empty one completes', '> ! < 0 .', ', , gather, completed failed'],
])('after the failure of another node %s', ([, steps, followed, more]) => {
  const { followed: found, state } = besideFailure(steps, more)
  expect(found).toBe(followed)
  expect(state).toMatchObject({ open: 0, status: 'failed' })
})

test('a node runs from the start of its first item to its end, and is counted once', () => {
  const plan = planOf()
  const state = newState(plan)
  const counts = ['2', '0~', '1~', '0^', '0~', '0+', '1+', '.'].map((step, at) => {
    const writes = advance(plan, state, { ...inputOf(step), at })
    applyWrites(plan, state, writes, at)
    return [
      state.nodes[0],
      ...writes.flatMap(one => (one.write === 'count' || one.write === 'count_items' ? one.by : [])),
    ]
  })
  expect(counts).toEqual([
    ['ready'],
    ['running', { running: 1 }, { running: 1 }],
    ['running', { running: 1 }],
    ['running', { running: -1 }],
    ['running', { running: 1 }],
    ['running', { completed: 1, running: -1 }],
    ['running', { completed: 1, running: -1 }],
    ['completed', { running: -1, completed: 1 }],
  ])
})

test('an item that awaits another execution only waits while that only waits', () => {
  const plan = planOf()
  const state = newState(plan)
  const aside = { type: 'item_set_aside', node: 0 } as const
  const steps: Untimed[] = [
    { type: 'created' },
    inputOf('2'),
    { ...aside, item: 0 },
    { ...aside, item: 1, busy: true },
    { type: 'nested_changed', node: 0, item: 1, busy: false },
    { type: 'nested_changed', node: 0, item: 1, busy: true },
  ]
  const clocks = steps.map((input, at) => {
    advanceState(plan, state, { ...input, at })
    return [[...(state.items.get(0)?.open.values() ?? [])].join(' '), state.clock.remainingMs !== null]
  })
  expect(clocks.slice(2)).toEqual([
    ['waiting ready', false],
    ['waiting ready', false],
    ['waiting waiting', true],
    ['waiting ready', false],
  ])
})

test('what an item has used is counted with the execution', () => {
  const plan = planOf()
  const state = newState(plan)
  applyWrites(plan, state, advance(plan, state, { ...inputOf('1'), at: 0 }), 0)
  const spent = { inputTokens: 1, outputTokens: 2, cost: 3 }
  const end = { type: 'item_ended', node: 0, item: 0, status: 'completed', spent, at: 1 } as const
  expect(advance(plan, state, end)).toContainEqual({ write: 'count', by: spent })
})

describe('of any graph, with ends, waits, crashes and requeues in any order', () => {
  const size = 6
  const most = 5
  const list = <T>(one: fc.Arbitrary<T>) => fc.array(one, { minLength: size, maxLength: size })
  const drawn = fc.record({
    edges: fc.array(fc.tuple(fc.nat(size - 1), fc.nat(size - 1)), { maxLength: 10, size: 'max' }),
    items: list(
      fc.option(
        fc.record({
          parallel: fc.integer({ min: 1, max: 3 }),
          onError: fc.constantFrom('fail' as const, 'continue' as const),
          direct: fc.boolean(),
          count: fc.integer({ min: 0, max: most }),
          kept: fc.subarray(Array.from({ length: most }, (_, item) => item)),
        }),
        { nil: undefined },
      ),
    ),
    onError: list(fc.constantFrom('fail' as const, 'continue' as const)),
    onFailure: fc.constantFrom('fail_fast' as const, 'continue' as const),
    fails: list(fc.array(fc.integer({ min: 0, max: 3 }), { minLength: most, maxLength: most })),
  })

  const countedNames = ['running', 'waiting', 'completed', 'failed'] as const
  const isOpen = (one: string | undefined) => one === 'ready' || one === 'running' || one === 'waiting'

  interface Row extends StoredNode {
    /** Undefined for an item without a row. */
    rows?: (string | undefined)[]
  }

  /** A store in memory: the rows that the writes make, and what the rules say about each write. */
  function openRows(plan: ExecutionPlan) {
    const rows: Row[] = plan.nodes.map(() => ({ status: 'pending', at: 0 }))
    const gathered = new Set<number>()
    const counted = plan.nodes.map(() => ({ running: 0, waiting: 0, completed: 0, failed: 0 }))
    const hasStopped = () =>
      plan.onFailure === 'fail_fast' &&
      rows.some(({ status: own }, at) => own === 'failed' && plan.nodes[at]!.onError === 'fail')
    const ends: string[] = []
    let status: ExecutionState['status'] = 'pending'
    let clock: Clock = { timeoutAt: null, remainingMs: null }
    let running = 0
    function write(one: ExecutionWrite, at: number): void {
      if (one.write === 'start') {
        status = 'running'
        clock = { timeoutAt: one.timeoutAt, remainingMs: null }
      } else if (one.write === 'clock') clock = one.clock
      else if (one.write === 'end') ends.push((status = one.status))
      else if (one.write === 'count') running += one.by.running ?? 0
      else if (one.write === 'create_job' || one.write === 'create_item') expect(hasStopped()).toBe(false)
      if (one.write === 'create_job') rows[one.node]!.status = one.takesSlotOf === null ? 'ready' : 'running'
      else if (one.write === 'node') Object.assign(rows[one.node]!, { status: one.status, at })
      else if (one.write === 'expand') {
        const own = Array.from({ length: one.count }, (_, item) => (one.kept.includes(item) ? 'completed' : undefined))
        Object.assign(rows[one.node]!, { status: 'ready', rows: own })
        counted[one.node]!.completed = one.kept.length
      } else if (one.write === 'create_item') {
        // In order, each once.
        expect(rows[one.node]!.rows!.indexOf(undefined)).toBe(one.item)
        rows[one.node]!.rows![one.item] = one.takesSlot ? 'running' : 'ready'
        expect(open(one.node)).toBeLessThanOrEqual(plan.nodes[one.node]!.items!.parallel)
      } else if (one.write === 'item') {
        expect(isOpen(rows[one.node]!.rows![one.item])).toBe(true)
        rows[one.node]!.rows![one.item] = one.status
      } else if (one.write === 'gather') {
        expect(gathered.has(one.node)).toBe(false)
        gathered.add(one.node)
        expect(open(one.node)).toBe(0)
        expect(rows[one.node]!.rows).not.toContain(undefined)
        expect(rows[one.node]!.rows).not.toContain('cancelled')
      } else if (one.write === 'count_items')
        for (const name of countedNames) counted[one.node]![name] += one.by[name] ?? 0
    }
    const open = (at: number) => rows[at]!.rows!.filter(isOpen).length
    return {
      rows,
      gathered,
      ends,
      hasStopped,
      write,
      stored: () => ({
        status,
        clock,
        nodes: rows.map(({ status: own, at, rows: those }): StoredNode => {
          if (!those || isOver(own)) return { status: own, at }
          const opened = [...those.entries()].filter(([, one]) => isOpen(one))
          const next = those.includes(undefined) ? those.indexOf(undefined) : those.length
          const kept = [...those.keys()].filter(item => item > next && those[item] !== undefined)
          const stopped = those.includes('cancelled')
          return { status: own, at, items: { count: those.length, next, open: opened as never, stopped, kept } }
        }),
      }),
      check() {
        expect(running).toBe(rows.filter(one => one.status === 'running').length)
        const begun = rows.filter(one => one.status === 'ready' || one.status === 'running')
        const onlyWaits = begun.every(
          ({ rows: those = [] }) => those.some(isOpen) && !/ready|running/.test(those.join()),
        )
        expect(clock.remainingMs !== null).toBe(begun.length > 0 && onlyWaits)
        for (const [at, { rows: those = [] }] of rows.entries())
          for (const name of countedNames) expect(counted[at]![name]).toBe(those.filter(one => one === name).length)
      },
    }
  }

  /** What each node ends as if nothing stops the execution: the rules, said as simply as possible. */
  function interpreted({ items: those, fails }: Drawn): string[] {
    return those.map((one, at) => {
      const fate = (item: number) => fails[at]![item] !== 0
      if (!one) return fate(0) ? 'completed' : 'failed'
      const all = Array.from({ length: one.count }, (_, item) => one.kept.includes(item) || fate(item))
      return one.onError === 'continue' || all.every(Boolean) ? 'completed' : 'failed'
    })
  }
  type Drawn = typeof drawn extends fc.Arbitrary<infer T> ? T : never

  function run(given: Drawn, picks: Iterator<number>, stopAfter: number) {
    const edges = [...new Set(given.edges.filter(([a, b]) => a < b).map(pair => pair.join('>')))].map(text =>
      text.split('>').map(Number),
    )
    const plan: ExecutionPlan = {
      onFailure: given.onFailure,
      timeoutMs: 1_000,
      nodes: given.items.map((one, at) =>
        node({
          successors: edges.filter(([from]) => from === at).map(([, to]) => to!),
          predecessors: edges.filter(([, to]) => to === at).length,
          onError: given.onError[at]!,
          ...(one ? { items: one } : {}),
        }),
      ),
    }
    const store = openRows(plan)
    let state = newState(plan)
    let now = 0
    const pick = (count: number) => picks.next().value! % count
    const step = (input: Untimed) => {
      const at = ++now
      const ranOn = store.hasStopped()
      const writes = advanceState(plan, state, { ...input, at })
      for (const one of writes) store.write(one, at)
      store.check()
      // What waits when another node fails does not start; what is requeued later runs again.
      if (!ranOn && store.hasStopped())
        expect(store.rows.flatMap(({ rows = [], status }) => (isOver(status) ? [] : rows))).not.toContain('ready')
      // A crash at any time loses nothing.
      const restored = restoredState(plan, store.stored())
      expect(restored).toEqual(state)
      state = restored
    }
    const status = (at: number, item: number) => (given.fails[at]![item] === 0 ? 'failed' : 'completed') as 'completed'
    step({ type: 'created' })
    for (let steps = 0; ; steps++) {
      if (steps === stopAfter) step({ type: pick(2) ? 'cancelled' : 'timed_out' })
      const live = store.rows.flatMap(({ status: own, rows }, at): Untimed[] => {
        if (own !== 'ready' && own !== 'running') return []
        const ran = own === 'running'
        if (store.gathered.has(at))
          return [{ type: 'job_ended', node: at, status: 'completed', ran: false, waited: true }]
        if (rows)
          return [...rows.entries()].flatMap(([item, one]): Untimed[] => {
            const end: Untimed = { type: 'item_ended', node: at, item, status: status(at, item) }
            const aside: Untimed = { type: 'item_set_aside', node: at, item, busy: pick(2) === 0 }
            if (one === 'ready') return [{ type: 'item_started', node: at, item }, aside, end]
            if (one === 'waiting') return [end, { type: 'nested_changed', node: at, item, busy: true }]
            if (one !== 'running') return []
            return [end, { ...end, slotOf: 'm' }, { type: 'item_requeued', node: at, item }]
          })
        const { count = 0 } = given.items[at] ?? {}
        const known: Untimed = ran
          ? { type: 'job_requeued', node: at }
          : { type: 'list_known', node: at, count, kept: given.items[at]?.kept.filter(item => item < count) ?? [] }
        const ends: Untimed = { type: 'job_ended', node: at, status: status(at, 0), ran }
        return [
          given.items[at] ? known : ends,
          ran ? { type: 'job_requeued', node: at } : { type: 'job_started', node: at },
        ]
      })
      if (live.length === 0) break
      // Shrinking may draw what would requeue for ever.
      step(live[steps > 500 ? 0 : pick(live.length)]!)
    }
    expect(state).toMatchObject({ open: 0 })
    expect(state.items.size).toBe(0)
    expect(store.ends).toHaveLength(1)
    expect(store.rows.flatMap(({ rows = [] }) => rows).filter(isOpen)).toEqual([])
    return { store, state }
  }

  const streams = fc.infiniteStream(fc.nat())

  test('each item gets one job in its turn and ends once, and each node ends as the rules say', () => {
    fc.assert(
      fc.property(drawn, streams, (given, picks) => {
        const all = { ...given, onError: given.onError.map(() => 'continue' as const) }
        const { state } = run(all, picks, -1)
        expect(state.nodes).toEqual(interpreted(all))
        expect(state.status).toBe('completed')
      }),
      { numRuns: 150 },
    )
  })

  test('with failures and a stop at any time, the execution ends once and nothing of it goes on', () => {
    fc.assert(
      fc.property(drawn, streams, fc.nat(40), (given, picks, stopAfter) => {
        const { store, state } = run(given, picks, stopAfter)
        expect(state.status).toBe(store.ends[0])
        expect(state.nodes.every(isOver)).toBe(true)
      }),
      { numRuns: 150 },
    )
  })
})
