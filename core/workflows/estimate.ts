import type { RecentRun } from '../store/store.ts'
import type { Graph } from './graph.ts'
import { ranksOf } from './graph.ts'

/** What is known of a node before it runs. */
export interface NodeOutlook {
  nodeId: string
  /** Null: none is selected. */
  modelId: string | null
  /** Completed runs of the same task on the same model, in the organization. */
  runs: readonly RecentRun[]
  /** The average run of any job of the model on this server, milliseconds; null if unknown. */
  averageMs: number | null
  /** Until one more job of the model would start, milliseconds; null if unknown. */
  waitingMs: number | null
  /** Whether its work costs nothing, whatever it is. */
  free: boolean
  /** The most that it can cost by the prices, in millionths; null if its inputs are not known yet. */
  maxCost: number | null
  /** Of a node that runs once for each item of a list; all the other facts are those of one item. */
  items?: ItemsOutlook | undefined
}

/** How often a node with a list runs. */
export interface ItemsOutlook {
  /** Null: the list is the result of another node. */
  count: number | null
  /** The most items that it may have. */
  maximum: number
  /** How many run at the same time. */
  parallel: number
}

/** Half of the runs are at most `median`, nine of ten at most `p90`; null if unknown. */
export interface Spread {
  median: number | null
  p90: number | null
}

export interface NodeEstimate {
  nodeId: string
  modelId: string | null
  /** How many runs it is based on. */
  runs: number
  /** Millionths of the currency unit. */
  cost: Spread & { maximum: number | null }
  /** Milliseconds. */
  run: Spread
  waitingMs: number | null
  /** Of a node with a list: `cost` and `run` are those of one item, and `all` of as many as there are, or may be. */
  items: (ItemsOutlook & { all: { cost: NodeEstimate['cost']; run: Spread } }) | null
}

export interface Estimate {
  nodes: NodeEstimate[]
  /** Sums of the nodes of which it is known; null if it is known of none. `unknown`: the other nodes. */
  cost: Spread & { maximum: number | null; unknown: string[] }
  /** The longest way through the graph, and how long it takes with its waiting. `unknown`: nodes whose time is not known. */
  criticalPath: Spread & { nodes: readonly string[]; waitingMs: number | null; unknown: string[] }
}

/** Estimates what the nodes of a graph cost and how long they take. Pure. What is unknown is null, and never 0. */
export function estimateOf(graph: Graph, outlooks: readonly NodeOutlook[]): Estimate {
  const estimates = outlooks.map(estimateOfNode)
  const nodes = estimates.map(wholeOf)
  const all = (unknown: (node: NodeEstimate) => boolean) => nodes.filter(unknown).map(({ nodeId }) => nodeId)
  return {
    nodes: estimates,
    cost: {
      median: sum(nodes.map(({ cost }) => cost.median)),
      p90: sum(nodes.map(({ cost }) => cost.p90)),
      maximum: nodes.some(({ cost }) => cost.maximum === null) ? null : sum(nodes.map(({ cost }) => cost.maximum)),
      unknown: all(({ cost }) => cost.median === null),
    },
    criticalPath: {
      ...longestPath(graph, new Map(nodes.map(node => [node.nodeId, node]))),
      unknown: all(({ run }) => run.median === null),
    },
  }
}

function estimateOfNode(outlook: NodeOutlook): NodeEstimate {
  const { nodeId, modelId, runs, averageMs, waitingMs, free, maxCost, items } = outlook
  const costs = spreadOf(runs.map(({ cost }) => cost))
  const times = spreadOf(runs.map(({ runMs }) => runMs))
  const cost = free ? { median: 0, p90: 0, maximum: 0 } : { ...costs, maximum: maxCost }
  const run = times.median === null ? { median: averageMs, p90: null } : times
  const all = items && { cost: multiplied(cost, items.count ?? items.maximum), run: multiplied(run, roundsOf(items)) }
  return { nodeId, modelId, runs: runs.length, cost, run, waitingMs, items: items && all ? { ...items, all } : null }
}

/** How often items follow each other, if each takes as long as the others. */
const roundsOf = ({ count, maximum, parallel }: ItemsOutlook): number => Math.ceil((count ?? maximum) / parallel)

/** Each of the values times a number; what is unknown stays so. */
function multiplied<Of extends { [Name in keyof Of]: number | null }>(values: Of, by: number): Of {
  const entries = Object.entries<number | null>(values)
  return Object.fromEntries(entries.map(([name, value]) => [name, value === null ? null : value * by])) as Of
}

/** A node with all its items, as the sums count it: unknown while the number of items is, unless each is free. */
function wholeOf(node: NodeEstimate): NodeEstimate {
  const { items } = node
  if (!items) return node
  if (items.count !== null) return { ...node, ...items.all }
  const unknown = { median: null, p90: null }
  return {
    ...node,
    cost: items.all.cost.p90 === 0 ? items.all.cost : { ...unknown, maximum: items.all.cost.maximum },
    run: unknown,
  }
}

/** The values at the places in order: for a few values the next greater one. */
export function spreadOf(values: readonly number[]): Spread {
  if (values.length === 0) return { median: null, p90: null }
  const sorted = values.toSorted((a, b) => a - b)
  const at = (share: number) => sorted[Math.ceil(share * sorted.length) - 1]!
  return { median: at(0.5), p90: at(0.9) }
}

/** The sum of what is known; null if nothing is. */
function sum(values: readonly (number | null)[]): number | null {
  const known = values.filter(value => value !== null)
  return known.length === 0 && values.length > 0 ? null : known.reduce((total, value) => total + value, 0)
}

/** What is known of the way to the end of a node. */
interface Path {
  nodes: readonly string[]
  median: number | null
  p90: number | null
  waitingMs: number | null
}
const noPath: Path = { nodes: [], median: null, p90: null, waitingMs: null }

/** The way whose nodes take the longest by their medians. A model is waited for once, by the first node that needs it. */
function longestPath(graph: Graph, nodes: ReadonlyMap<string, NodeEstimate>): Path {
  const paths = new Map<string, Path>()
  const known = ({ median, waitingMs }: Path) => (median ?? 0) + (waitingMs ?? 0)
  const longer = (a: Path, b: Path) =>
    known(b) > known(a) || (known(b) === known(a) && b.nodes.length > a.nodes.length) ? b : a
  const awaited = new Set<string | null>()
  for (const rank of ranksOf(graph) ?? []) {
    for (const id of rank) {
      const { modelId, run, waitingMs } = nodes.get(id)!
      const before = graph.predecessors
        .get(id)!
        .map(one => paths.get(one)!)
        .reduce(longer, noPath)
      const waits = awaited.has(modelId) ? null : waitingMs
      paths.set(id, {
        nodes: [...before.nodes, id],
        median: plus(before.median, run.median),
        p90: plus(before.p90, run.p90 ?? run.median),
        waitingMs: plus(before.waitingMs, waits),
      })
    }
    for (const id of rank) awaited.add(nodes.get(id)!.modelId)
  }
  return [...paths.values()].reduce(longer, noPath)
}

/** The sum of two durations, of which each may be unknown. */
const plus = (a: number | null, b: number | null): number | null =>
  a === null && b === null ? null : (a ?? 0) + (b ?? 0)
