import fc from 'fast-check'
import type { ExecutionPlan } from '../../../core/dag/execution-state.ts'

/** What a job does: it works, awaits something from outside, or awaits another execution. */
export type Work = { kind: 'work' | 'wait'; succeeds: boolean } | { kind: 'nested'; graph: Graph }

export interface GraphNode {
  /** Null: it has none. */
  condition: boolean | null
  /** One job; or one for each item. */
  work: Work | { items: Work[]; parallel: number; onItemError: 'fail' | 'continue' }
  join: 'all' | 'any'
  onError: 'fail' | 'continue'
  direct: boolean
  before: number[]
  /** Those before it without which it runs too. */
  optional: number[]
}

/** An execution before it runs, with what will become of each job. */
export interface Graph {
  onFailure: 'fail_fast' | 'continue'
  nodes: GraphNode[]
}

const either = fc.constantFrom('fail' as const, 'continue' as const)
const usually = fc.nat(3).map(drawn => drawn > 0)

function graphs(most: number, inner?: fc.Arbitrary<Graph>): fc.Arbitrary<Graph> {
  const own: fc.Arbitrary<Work> = fc.record({
    kind: fc.constantFrom('work' as const, 'wait' as const),
    succeeds: usually,
  })
  const work = inner
    ? fc.oneof(
        { weight: 3, arbitrary: own },
        { weight: 1, arbitrary: inner.map(graph => ({ kind: 'nested' as const, graph })) },
      )
    : own
  const list = fc.record({
    items: fc.array(work, { maxLength: 4 }),
    parallel: fc.integer({ min: 1, max: 3 }),
    onItemError: either,
  })
  const node = fc.record({
    condition: fc.constantFrom(null, null, true, false),
    work: fc.oneof({ weight: 2, arbitrary: work }, { weight: 1, arbitrary: list }),
    join: fc.constantFrom('all' as const, 'any' as const),
    onError: either,
    direct: fc.boolean(),
    before: fc.array(fc.nat(most - 1), { maxLength: 3 }),
    optional: fc.array(fc.nat(most - 1), { maxLength: 2 }),
  })
  return fc
    .record({
      onFailure: fc.constantFrom('fail_fast' as const, 'continue' as const),
      nodes: fc.array(node, { minLength: 1, maxLength: most, size: 'max' }),
    })
    .map(({ onFailure, nodes }) => ({
      onFailure,
      nodes: nodes.map((one, at) => {
        const before = [...new Set(one.before)].filter(from => from < at)
        return { ...one, before, optional: before.filter(from => one.optional.includes(from)) }
      }),
    }))
}

/** Graphs of up to 8 nodes and lists, in which others of up to 3 are nested, twice. */
export const anyGraph: fc.Arbitrary<Graph> = graphs(8, graphs(3, graphs(3)))

export const planOf = ({ onFailure, nodes }: Graph): ExecutionPlan => ({
  onFailure,
  timeoutMs: 1_000,
  nodes: nodes.map(({ work, join, onError, condition, direct, before, optional }, at) => ({
    modelId: 'm',
    successors: nodes.flatMap((other, after) => (other.before.includes(at) ? [after] : [])),
    predecessors: before.length,
    onError,
    direct: direct && condition === null,
    join,
    optional,
    ...('items' in work ? { items: { parallel: work.parallel, onError: work.onItemError, direct } } : {}),
  })),
})

/**
 * What becomes of an execution that nothing stops, by the rules of the guides: the end of each node, and its own. With
 * `fail_fast` the end of the execution is the same, and that of its nodes depends on what ran.
 */
export function interpreted({ nodes }: Graph): { nodes: string[]; status: 'completed' | 'failed' } {
  const ends: string[] = []
  /** Those that failed without `on_error: continue`, and all after them. */
  const lost = new Set<number>()
  for (const [at, { before, condition, join, optional, work, onError }] of nodes.entries()) {
    const isLost = before.some(from => lost.has(from))
    const skipped = before.filter(from => ends[from] === 'skipped')
    const isReached =
      skipped.length === 0 ||
      (join === 'any' && skipped.length < before.length) ||
      skipped.every(from => optional.includes(from))
    if (isLost || !isReached || condition === false) ends.push('skipped')
    else {
      const succeeds = 'items' in work ? work.onItemError === 'continue' || work.items.every(endsWell) : endsWell(work)
      ends.push(succeeds ? 'completed' : 'failed')
    }
    if (isLost || (ends[at] === 'failed' && onError === 'fail')) lost.add(at)
  }
  const hasFailed = nodes.some(({ onError }, at) => ends[at] === 'failed' && onError === 'fail')
  return { nodes: ends, status: hasFailed ? 'failed' : 'completed' }
}

const endsWell = (work: Work): boolean =>
  work.kind === 'nested' ? interpreted(work.graph).status === 'completed' : work.succeeds
