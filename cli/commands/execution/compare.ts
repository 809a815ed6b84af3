import type { Command } from '@commander-js/extra-typings'
import { moneyText } from '../../../core/money-text.ts'
import { type Api, dataOf, openClient } from '../../client/client.ts'
import { findExecution } from '../../executions/execution.ts'
import { jobStatusText } from '../../jobs/draw.ts'
import { withCommon, withExamples } from '../../terminal/options.ts'
import { tookText } from '../../terminal/quantities-text.ts'
import { type Paint, printable } from '../../terminal/styled-line.ts'
import type { Terminal } from '../../terminal/terminal.ts'

/** `infer execution compare <id> <other>`: shows what differs between two executions, node by node. */
export function defineCompare(command: Command, terminal: Terminal): void {
  const compare = withCommon(command.command('compare'))
    .summary('compare two executions, node by node')
    .description(
      'Compares two executions, node by node: status, model, inputs, result, error, time and cost. Inputs and results that are too long for a list are not compared.',
    )
    .argument('<id>', 'the first execution, or the end of its id')
    .argument('<other>', 'the second execution, or the end of its id')
    .action(async (first, second, { dataDir, json }) => {
      const client = openClient(dataDir)
      const [id, other] = await Promise.all([findExecution(client, first), findExecution(client, second)])
      const params = { path: { id }, query: { with: other } }
      const found = await dataOf(client.api.GET('/api/workflow-executions/{id}/compare', { params }))
      if (json) return terminal.json(found)
      const { nodes } = found
      terminal.table(
        ['node', 'first', 'second', 'took', 'cost', 'different'],
        nodes.map(node => rowOf(node, terminal.paint)),
      )
      const different = nodes.filter(({ different, first, second }) => different.length > 0 || !first || !second).length
      terminal.remark(
        different === 0 ? `All ${nodes.length} nodes are the same.` : `${different} of ${nodes.length} nodes differ.`,
      )
    })
  withExamples(compare, [
    ['infer execution compare 7QK2M9XD 4HT1W0ZB', 'by the ends of their ids'],
    ['infer execution compare exec_… exec_… --json', 'for scripts'],
  ])
}

type Compared = Api['ExecutionComparison']['nodes'][number]

function rowOf({ node_id, first, second, different, unknown }: Compared, paint: Paint): string[] {
  const status = (run: Compared['first']) => (run ? jobStatusText(run.status, paint) : '-')
  const took = (run: Compared['first']) => (run?.duration_ms == null ? '-' : tookText(run.duration_ms))
  const cost = (run: Compared['first']) => (run?.cost == null ? '-' : moneyText(run.cost))
  const why = !first ? 'only in the second' : !second ? 'only in the first' : different.join(', ') || '='
  const not = unknown.length === 0 ? '' : ` (${unknown.join(', ')} not compared)`
  return [
    printable(node_id),
    status(first),
    status(second),
    `${took(first)} / ${took(second)}`,
    `${cost(first)} / ${cost(second)}`,
    why + not,
  ]
}
