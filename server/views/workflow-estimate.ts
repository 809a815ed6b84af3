import { z } from 'zod'
import {
  array,
  integer,
  namedObject,
  nullable,
  nullableInteger,
  nullableNumber,
  nullableString,
  object,
  string,
} from '../../core/schemas/fields.ts'
import type { Estimate, Spread } from '../../core/workflows/estimate.ts'

const cost = {
  median: nullableNumber('Median, in the currency unit of the prices; null if unknown.'),
  p90: nullableNumber('What nine of ten runs cost at most; null if unknown.'),
  maximum: nullableNumber('The most by the prices and the inputs; null if the inputs are not known before the run.'),
}
const spreadMs = {
  median: nullableInteger('Median of these runs, or the average of the model on this server; null if unknown.'),
  p90: nullableInteger('What nine of ten runs take at most; null if unknown.'),
}
const unknown_nodes = (what: string) => array(`Ids of the nodes ${what}.`, z.string())

export const WorkflowEstimate = namedObject(
  'WorkflowEstimate',
  'What an execution would cost and how long it would take. What is unknown is null, and never 0.',
  {
    cost: object('Sums of the nodes whose cost is known; null if it is known of none.', {
      ...cost,
      unknown_nodes: unknown_nodes('whose cost is not known, and not in the sums'),
    }),
    critical_path: object('The way through the graph that takes the longest, by medians.', {
      nodes: array('Ids of its nodes, in order.', z.string()),
      median_ms: nullableInteger(
        'Milliseconds that its nodes run, without waits for people, events or times; null if unknown.',
      ),
      p90_ms: nullableInteger('The same if each took as long as nine of ten runs at most.'),
      waiting_ms: nullableInteger('Milliseconds that its nodes wait for models and slots before; null if unknown.'),
      unknown_nodes: unknown_nodes('of the workflow whose time is not known, and not in the sums'),
    }),
    nodes: array(
      'The nodes that would run.',
      z.object({
        node_id: string('Id of the node.'),
        model_id: nullableString('Id of the model; null without one.'),
        runs: integer('Number of runs of the same task and model in the organization that it is based on, 64 at most.'),
        cost: object('Cost of the node.', cost),
        run_ms: object('Milliseconds of its run.', spreadMs),
        items: nullable(
          z.object({
            count: nullableInteger('How many there are; null if the list is the result of a node.'),
            maximum: integer('The most items that the list may have.'),
            cost: object('Cost of as many as there are, or may be.', cost),
            run_ms: object('Milliseconds that they take together.', spreadMs),
          }),
          'Of a node with `for_each`, all items together: `cost` and `run_ms` beside it are those of one item. Null for others.',
        ),
        waiting_ms: nullableInteger(
          'Milliseconds until a job of its model would start now, with loading it; null if unknown.',
        ),
      }),
    ),
  },
)

const units = (millionths: number | null) => (millionths === null ? null : millionths / 1e6)
const costObject = ({ median, p90, maximum }: Spread & { maximum: number | null }) => ({
  median: units(median),
  p90: units(p90),
  maximum: units(maximum),
})
const msObject = ({ median, p90 }: Spread) => ({ median: rounded(median), p90: rounded(p90) })
const rounded = (ms: number | null) => (ms === null ? null : Math.round(ms))

export const shownEstimate = ({ cost, criticalPath, nodes }: Estimate): z.input<typeof WorkflowEstimate> => ({
  cost: { ...costObject(cost), unknown_nodes: cost.unknown },
  critical_path: {
    nodes: [...criticalPath.nodes],
    median_ms: rounded(criticalPath.median),
    p90_ms: rounded(criticalPath.p90),
    waiting_ms: rounded(criticalPath.waitingMs),
    unknown_nodes: criticalPath.unknown,
  },
  nodes: nodes.map(node => ({
    node_id: node.nodeId,
    model_id: node.modelId,
    runs: node.runs,
    cost: costObject(node.cost),
    run_ms: msObject(node.run),
    items: node.items && {
      count: node.items.count,
      maximum: node.items.maximum,
      cost: costObject(node.items.all.cost),
      run_ms: msObject(node.items.all.run),
    },
    waiting_ms: rounded(node.waitingMs),
  })),
})
