import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { advance, type ExecutionInput, type ExecutionWrite, nextModels } from '../../../core/dag/advance.ts'
import {
  applyWrites,
  type ExecutionPlan,
  type ExecutionState,
  isOver,
  newState,
  restoredState,
} from '../../../core/dag/execution-state.ts'

/**
 * `a>b c>d`, with a question mark after nodes with on_error continue: `a?>b`, an asterisk after those that join any: `a>b*`,
 * and a colon before the edge whose end has defaults: `a:>b`. The model of a node is its letter.
 */
function planOf(text: string, onFailure: ExecutionPlan['onFailure'] = 'fail_fast') {
  const drawn = text.split(' ').map(part => part.split('>'))
  const pairs = drawn.map(([from, to]) => (to ? [from!.replace(':', ''), to] : [from!]))
  const names = [...new Set(pairs.flat())]
  const at = (name: string) => names.indexOf(name)
  const edges = pairs.flatMap(([from, to]) => (to ? [[at(from!), at(to)] as const] : []))
  const plan: ExecutionPlan = {
    onFailure,
    timeoutMs: 1_000,
    nodes: names.map((name, node) => ({
      modelId: name,
      direct: true,
      successors: edges.filter(([from]) => from === node).map(([, to]) => to),
      predecessors: edges.filter(([, to]) => to === node).length,
      onError: name.endsWith('?') ? 'continue' : 'fail',
      join: name.endsWith('*') ? 'any' : 'all',
      optional: drawn.flatMap(([from, to]) => (to === name && from!.endsWith(':') ? [at(from!.replace(':', ''))] : [])),
    })),
  }
  return { plan, names }
}

/** Applies one input after another, each at the time of its index in the list; returns the writes of each. */
function take(plan: ExecutionPlan, inputs: readonly Untimed[], state = newState(plan)): ExecutionWrite[][] {
  return inputs.map((input, at) => {
    const before = structuredClone(state)
    const writes = advance(plan, state, { ...input, at })
    expect(state).toEqual(before)
    applyWrites(plan, state, writes, at)
    return writes
  })
}
type Untimed<Input = ExecutionInput> = Input extends ExecutionInput ? Omit<Input, 'at'> : never

/**
 * The inputs of `a~ a a b! c^ d= e- @`: starts, completes, cancelled, fails, is requeued, reuses a result, its condition is
 * false; `@` cancels all, `@@` times out.
 */
function inputOf(step: string, names: readonly string[]): Untimed {
  if (step === '@') return { type: 'cancelled' }
  if (step === '@@') return { type: 'timed_out' }
  const node = names.indexOf(step.replace(/[~!^=-]$/, ''))
  expect(node, step).toBeGreaterThanOrEqual(0)
  if (step.endsWith('~')) return { type: 'job_started', node }
  if (step.endsWith('^')) return { type: 'job_requeued', node }
  if (step.endsWith('=')) return { type: 'result_reused', node, ran: false }
  if (step.endsWith('-')) return { type: 'condition_false', node, ran: false }
  return { type: 'job_ended', node, status: step.endsWith('!') ? 'failed' : 'completed', ran: true }
}

/** Jobs that are created, nodes that are skipped and the end, of each step. */
function play(graph: string, steps: string, onFailure?: ExecutionPlan['onFailure']): string {
  const { plan, names } = planOf(graph, onFailure)
  const inputs = steps
    .split(' ')
    .filter(Boolean)
    .map(step => inputOf(step, names))
  return take(plan, [{ type: 'created' }, ...inputs])
    .map(writes =>
      writes
        .flatMap(one => {
          if (one.write === 'create_job') return `+${names[one.node]!.replace(/[?*]/, '')}`
          if (one.write === 'node' && one.status === 'skipped') return `-${names[one.node]}`
          return one.write === 'end' ? one.status : []
        })
        .join(' '),
    )
    .join(', ')
}

test.for([
  ['one', 'a', 'a', '+a, completed'],
  ['a chain', 'a>b b>c', 'a b c', '+a, +b, +c, completed'],
  ['side by side', 'a b', 'b a', '+a +b, , completed'],
  ['a fan and its end', 'a>b a>c b>d c>d', 'a c b d', '+a, +b +c, , +d, completed'],
  ['a failure ends what has not begun', 'a>b c>d', 'a!', '+a +c, -b -c -d failed'],
  ['what comes after a failure is skipped, the rest runs', 'a>b c>d', 'a! c d', '+a +c, -b, +d, failed', 'continue'],
  ['what comes after several failures is skipped once', 'a>c b>c', 'a! b!', '+a +b, -c, failed', 'continue'],
  ['a failure that is borne is an end like any other', 'a?>b', 'a?! b', '+a, +b, completed'],
  ['one that nobody comes after too', 'a? b', 'a?! b', '+a +b, , completed'],
  ['a borne failure does not heal another', 'a?>c b>c', 'a?! b!', '+a +b, , -c failed'],
  [
    'those that run when another fails go on, and what comes after them does not',
    'a>b c>d',
    'c~ a! c',
    '+a +c, , -b -d, failed',
  ],
  ['an end that is told twice changes nothing', 'a>b', 'a a! b', '+a, +b, , completed'],
  ['a job that waits again runs again', 'a', 'a~ a^ a~ a', '+a, , , , completed'],
  ['a result that is taken over is an end like any other', 'a>b', 'a= b', '+a, +b, completed'],
  ['what was stopped goes on no more', 'a>b', 'a~ @ a @ @@', '+a, , cancelled, , , '],
  [
    'a false condition skips what comes after it, and nothing has failed',
    'a>b b>c c>d',
    'a b-',
    '+a, +b, -b -c -d completed',
  ],
  ['a false condition of the first node is an end too', 'a', 'a-', '+a, -a completed'],
  ['the other branch runs, and a join of all does not', 'a>c b>c d', 'a- b d', '+a +b +d, -a, -c, completed'],
  ['a join of any runs after the last of its branches', 'a>c* b>c*', 'a- b c*', '+a +b, -a, +c, completed'],
  ['also where the skipped one is the last', 'a>c* b>c*', 'a b- c*', '+a +b, , -b +c, completed'],
  ['a join of any does not run after nothing', 'a>c* b>c* c*>d', 'a- b-', '+a +b, -a, -b -c* -d completed'],
  ['a node with defaults runs without what was skipped', 'a:>b', 'a- b', '+a, -a +b, completed'],
  ['but not without another', 'a:>c b>c', 'a- b-', '+a +b, -a, -b -c completed'],
  ['defaults hold for a node that was skipped because of another', 'a>b b:>c', 'a- c', '+a, -a -b +c, completed'],
  ['a diamond of two skips reaches its end once', 'a>b a>c b>d c>d', 'a-', '+a, -a -b -c -d completed'],
  ['a failure skips a join of any too', 'a>c* b>c*', 'a! b', '+a +b, -c*, failed', 'continue'],
  ['an end after a skip ends the execution', 'a>b c', 'a- c', '+a +c, -a -b, completed'],
] as const)('%s', ([, graph, steps, followed, onFailure]) => {
  expect(play(graph, steps, onFailure)).toBe(followed)
})

const announced = { write: 'announce', ended: false, timeoutAt: undefined }
const over = { ...announced, ended: true }

test('the first job that starts sets the start time of the execution, and no other does', () => {
  const { plan } = planOf('a b')
  const start = (node: number): Untimed => ({ type: 'job_started', node })
  expect(take(plan, [start(0), start(1)])).toEqual([
    [
      { write: 'node', node: 0, status: 'running' },
      { write: 'count', by: { running: 1 } },
      { write: 'start', timeoutAt: 1_000 },
      { write: 'event', event: 'started', node: null },
      { ...announced, timeoutAt: 1_000 },
    ],
    [{ write: 'node', node: 1, status: 'running' }, { write: 'count', by: { running: 1 } }, announced],
  ])
})

test('the end of a job is counted with its usage, and a job that never ran is not counted as running', () => {
  const { plan } = planOf('a b')
  const spent = { inputTokens: 1, outputTokens: 2, cost: 3 }
  const end = { type: 'job_ended', status: 'completed', spent } as const
  expect(
    take(plan, [
      { ...end, node: 0, ran: true },
      { ...end, node: 1, status: 'cancelled', ran: false },
    ]),
  ).toEqual([
    [
      { write: 'count', by: { running: -1, completed: 1, ...spent } },
      { write: 'node', node: 0, status: 'completed' },
      announced,
    ],
    [
      { write: 'count', by: { running: 0, failed: 1, ...spent } },
      { write: 'node', node: 1, status: 'failed' },
      { write: 'end', status: 'failed', failure: { node: 1, failed: [1], skipped: [] } },
      { write: 'event', event: 'failed', node: null },
      over,
    ],
  ])
})

test('skipped nodes are written before the end, and a job that waits for one is withdrawn', () => {
  const { plan, names } = planOf('a>b c')
  expect(take(plan, [{ type: 'created' }, inputOf('a!', names)])[1]).toEqual([
    { write: 'count', by: { running: -1, failed: 1 } },
    { write: 'node', node: 0, status: 'failed' },
    { write: 'count', by: { skipped: 2 } },
    { write: 'node', node: 1, status: 'skipped', reason: 'failure' },
    { write: 'event', event: 'node.skipped', node: 1 },
    { write: 'node', node: 2, status: 'skipped', reason: 'failure' },
    { write: 'event', event: 'node.skipped', node: 2 },
    { write: 'withdraw_job', node: 2 },
    { write: 'end', status: 'failed', failure: { node: 0, failed: [0], skipped: [1, 2] } },
    { write: 'event', event: 'failed', node: null },
    over,
  ])
})

test('an execution reports its first failure, of two at the same time that of the lower node', () => {
  const { plan } = planOf('a b? c d', 'continue')
  const fail = (node: number, at: number): ExecutionInput => ({
    type: 'job_ended',
    node,
    status: 'failed',
    ran: true,
    at,
  })
  const failureAfter = (...inputs: ExecutionInput[]) => {
    const state = newState(plan)
    const writes = inputs.flatMap(input => {
      const now = advance(plan, state, input)
      applyWrites(plan, state, now, input.at)
      return now
    })
    return writes.find(one => one.write === 'end')?.failure
  }
  const all = { failed: [0, 1, 2, 3], skipped: [] }
  expect(failureAfter(fail(1, 1), fail(3, 2), fail(0, 3), fail(2, 4))).toEqual({ node: 3, ...all })
  expect(failureAfter(fail(1, 1), fail(3, 2), fail(2, 2), fail(0, 3))).toEqual({ node: 2, ...all })
  expect(failureAfter(fail(1, 1), fail(3, 9), fail(2, 9), fail(0, 5))).toEqual({ node: 0, ...all })
})

describe('a slot kept for the next node', () => {
  const created = (graph: string, slotOf: string, direct = true) => {
    const { plan, names } = planOf(graph)
    const nodes = plan.nodes.map(node => ({ ...node, direct, modelId: node.modelId[0]! }))
    const writes = take({ ...plan, nodes }, [
      { type: 'created' },
      { type: 'job_ended', node: 0, status: 'completed', ran: true, slotOf },
    ])[1]!
    return writes.flatMap(one =>
      one.write === 'create_job' ? [[names[one.node], one.takesSlotOf]] : one.write === 'count' ? [one.by.running] : [],
    )
  }
  test.for([
    [
      'is taken by the first node of its model, and by one alone',
      'x>a x>b1 x>b2',
      'b',
      true,
      [-1, ['a', null], ['b1', 0], 1, ['b2', null]],
    ],
    ['is left where no node of its model follows', 'x>a', 'b', true, [-1, ['a', null]]],
    ['is left where a result of the same work has to be looked for', 'x>a', 'a', false, [-1, ['a', null]]],
  ] as const)('%s', ([, graph, slotOf, direct, writes]) => {
    expect(created(graph, slotOf, direct)).toEqual(writes)
  })
})

test('work that another execution has completed is not run again', () => {
  const { plan } = planOf('a>b b>c d')
  const some = newState(plan, new Set([0, 3]))
  expect(some).toMatchObject({ nodes: ['completed', 'pending', 'pending', 'completed'], open: 2 })
  expect(advance(plan, some, { type: 'created', at: 5 })).toEqual([
    { write: 'event', event: 'created', node: null },
    { write: 'create_job', node: 1, takesSlotOf: null },
    announced,
  ])
  expect(advance(plan, newState(plan, new Set([0, 1, 2, 3])), { type: 'created', at: 5 })).toEqual([
    { write: 'event', event: 'created', node: null },
    { write: 'start', timeoutAt: 1_005 },
    { write: 'event', event: 'started', node: null },
    { write: 'end', status: 'completed', failure: null },
    { write: 'event', event: 'completed', node: null },
    { ...over, timeoutAt: 1_005 },
  ])
})

test.for([
  ['cancelled', '@', ['completed', 'cancelled', 'cancelled', 'cancelled'], { running: -1, failed: 0, skipped: 3 }],
  ['timed_out', '@@', ['completed', 'timed_out', 'cancelled', 'cancelled'], { running: -1, failed: 1, skipped: 2 }],
] as const)('an execution that is %s ends with all of its nodes', ([status, step, nodes, by]) => {
  const { plan, names } = planOf('done runs ready>later')
  const state = newState(plan)
  const inputs = ['done~', 'done', 'runs~'].map(one => inputOf(one, names))
  const [, , , , writes] = take(plan, [{ type: 'created' }, ...inputs, inputOf(step, names)], state)
  expect(state).toMatchObject({ status, nodes, open: 0 })
  expect(writes!.filter(({ write }) => write !== 'node')).toEqual([
    { write: 'withdraw_job', node: 1 },
    { write: 'withdraw_job', node: 2 },
    { write: 'count', by },
    { write: 'end', status, failure: null },
    { write: 'event', event: status, node: null },
    over,
  ])
})

describe('of any graph, with ends in any order', () => {
  const graphs = fc
    .record({
      size: fc.integer({ min: 1, max: 12 }),
      edges: fc.array(fc.tuple(fc.nat(11), fc.nat(11)), { maxLength: 30, size: 'max' }),
      borne: fc.array(fc.boolean(), { minLength: 12, maxLength: 12 }),
      joins: fc.array(fc.constantFrom('all' as const, 'any' as const), { minLength: 12, maxLength: 12 }),
      defaults: fc.array(fc.boolean(), { minLength: 144, maxLength: 144 }),
      onFailure: fc.constantFrom('fail_fast' as const, 'continue' as const),
    })
    .map(({ size, edges, borne, joins, defaults, onFailure }): ExecutionPlan => {
      const own = [...new Set(edges.filter(([a, b]) => a < b && b < size).map(pair => pair.join('>')))].map(text =>
        text.split('>').map(Number),
      )
      return {
        onFailure,
        timeoutMs: 1_000,
        nodes: Array.from({ length: size }, (_, node) => ({
          modelId: 'm',
          direct: true,
          successors: own.filter(([from]) => from === node).map(([, to]) => to!),
          predecessors: own.filter(([, to]) => to === node).length,
          onError: borne[node] ? 'continue' : 'fail',
          join: joins[node]!,
          optional: own.flatMap(([from, to]) => (to === node && defaults[from! * 12 + node] ? [from!] : [])),
        })),
      }
    })

  /** What each node ends as, given the fate of those that run: the rules, said as simply as possible. */
  function interpreted({ nodes }: ExecutionPlan, fates: readonly Fate[]): string[] {
    const ends: string[] = []
    for (const [node, { join, optional }] of nodes.entries()) {
      const before = nodes.flatMap(({ successors }, from) => (successors.includes(node) ? [from] : []))
      const came = before.filter(from => ends[from] !== 'skipped')
      const left = before.filter(from => ends[from] === 'skipped')
      const runs =
        left.length === 0 || (join === 'any' && came.length > 0) || left.every(from => optional!.includes(from))
      ends.push(runs ? fates[node]! : 'skipped')
    }
    return ends
  }
  type Fate = 'completed' | 'failed' | 'skipped'

  test('with conditions each node ends as the rules say, in whatever order they end', () => {
    const drawnFates = fc.array(fc.constantFrom<Fate>('completed', 'failed', 'skipped'), {
      minLength: 12,
      maxLength: 12,
    })
    fc.assert(
      fc.property(graphs, drawnFates, fc.infiniteStream(fc.nat()), (drawn, fates, picks) => {
        const plan = { ...drawn, nodes: drawn.nodes.map(node => ({ ...node, onError: 'continue' as const })) }
        const state = newState(plan)
        let at = 0
        const step = (input: Untimed) => {
          const writes = advance(plan, state, { ...input, at: ++at })
          applyWrites(plan, state, writes, at)
        }
        step({ type: 'created' })
        for (;;) {
          const live = [...state.nodes.keys()].filter(node => state.nodes[node] === 'ready')
          if (live.length === 0) break
          const node = live[picks.next().value! % live.length]!
          const status = fates[node]!
          if (status === 'skipped') step({ type: 'condition_false', node, ran: false })
          else step({ type: 'job_ended', node, status, ran: false })
        }
        expect(state.nodes).toEqual(interpreted(plan, fates))
        expect(state).toMatchObject({ open: 0, status: 'completed' })
      }),
      { numRuns: 1_000 },
    )
  })

  test('no node runs before its parents, each ends once, the end is reported once, and the stored rows restore the state', () => {
    fc.assert(
      fc.property(graphs, fc.infiniteStream(fc.nat()), fc.infiniteStream(fc.boolean()), (plan, picks, fates) => {
        const state = newState(plan)
        const changedAt = plan.nodes.map(() => 0)
        const released = new Set<number>()
        const ends: string[] = []
        const counted = { running: 0, completed: 0, failed: 0, skipped: 0 }
        let now = 0
        let conditions = 0
        const step = (input: Untimed) => {
          const at = ++now
          const writes = advance(plan, state, { ...input, at })
          applyWrites(plan, state, writes, at)
          for (const one of writes) {
            if (one.write === 'end') ends.push(one.status)
            if (one.write === 'node') changedAt[one.node] = at
            if (one.write === 'count')
              for (const name of Object.keys(counted) as (keyof typeof counted)[]) counted[name] += one.by[name] ?? 0
            if (one.write !== 'create_job') continue
            expect(released.has(one.node)).toBe(false)
            released.add(one.node)
            const { join, optional } = plan.nodes[one.node]!
            for (const [before, { successors, onError }] of plan.nodes.entries())
              if (successors.includes(one.node))
                expect(
                  state.nodes[before] === 'completed' ||
                    (state.nodes[before] === 'failed' && onError === 'continue') ||
                    (state.nodes[before] === 'skipped' && (join === 'any' || optional!.includes(before))),
                ).toBe(true)
          }
          expect(counted).toEqual(countedIn(state))
          const kept = state.nodes.map((status, node) => ({ status, at: changedAt[node]! }))
          expect(restoredState(plan, { status: state.status, clock: state.clock, nodes: kept })).toEqual(state)
        }
        step({ type: 'created' })
        for (;;) {
          const live = [...state.nodes.keys()].filter(
            node => state.nodes[node] === 'ready' || state.nodes[node] === 'running',
          )
          if (live.length === 0) break
          const node = live[picks.next().value! % live.length]!
          // Some begin and end later, others end at once.
          if (state.nodes[node] === 'ready' && fates.next().value) step({ type: 'job_started', node })
          else if (picks.next().value! % 4 === 0) {
            conditions++
            step({ type: 'condition_false', node, ran: state.nodes[node] === 'running' })
          } else {
            const status = fates.next().value ? 'completed' : 'failed'
            const slotOf = fates.next().value ? 'm' : undefined
            step({ type: 'job_ended', node, status, ran: state.nodes[node] === 'running', slotOf })
          }
        }
        expect(state.nodes.every(isOver)).toBe(true)
        expect(state.open).toBe(0)
        const bad = state.nodes.some((status, node) => status === 'failed' && plan.nodes[node]!.onError === 'fail')
        expect(ends).toEqual([bad ? 'failed' : 'completed'])
        expect(state.status).toBe(ends[0])
        if (!bad && conditions === 0) expect(state.nodes.includes('skipped')).toBe(false)
      }),
      { numRuns: 500 },
    )
  })
})

function countedIn({ nodes }: ExecutionState) {
  const many = (...those: string[]) => nodes.filter(node => those.includes(node)).length
  return {
    running: many('running'),
    completed: many('completed'),
    failed: many('failed', 'timed_out'),
    skipped: many('skipped', 'cancelled'),
  }
}

test.each<[graph: string, steps: string, next: string]>([
  ['a>b b>c', '', 'b'],
  ['a>b b>c', 'a~', 'b'],
  ['a>b b>c', 'a', 'c'],
  ['a>b b>c', 'a b', ''],
  ['a>c b>c', 'a~', 'c'],
  ['a>b b>d c>d', '', 'b'],
  ['a>b b>d c>d', 'a', 'd'],
  ['a>b a>c', '', 'b c'],
  ['a>b b>c', 'a!', ''],
  ['a?>b b>c', 'a?!', 'c'],
  ['a>b b>c', '@', ''],
])('in %s after "%s" these come next: "%s"', (graph, steps, next) => {
  const { plan, names } = planOf(graph)
  const state = newState(plan)
  const inputs = ['created', ...steps.split(' ').filter(Boolean)]
  for (const [at, step] of inputs.entries()) {
    const input = step === 'created' ? { type: 'created' as const, at } : { ...inputOf(step, names), at }
    applyWrites(plan, state, advance(plan, state, input), at)
  }
  expect(nextModels(plan, state).join(' ')).toBe(next)
})

test('a pinned node has its event at the start, and the node after it begins', () => {
  const { plan } = planOf('a>b')
  const nodes = plan.nodes.map((node, at) => (at === 0 ? { ...node, pinned: true as const } : node))
  const writes = advance({ ...plan, nodes }, newState(plan, new Set([0])), { type: 'created', at: 0 })
  const told = writes.flatMap(one =>
    one.write === 'event' ? [`${one.event} ${one.node}`] : one.write === 'create_job' ? [`+${one.node}`] : [],
  )
  expect(told).toEqual(['created null', 'node.pinned 0', '+1'])
})
