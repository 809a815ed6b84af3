import type { Command } from '@commander-js/extra-typings'
import { openClient } from '../../client/client.ts'
import { type NodePair, pairNodes } from '../../executions/compare.ts'
import { executionOf, findExecution } from '../../executions/execution.ts'
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
      'Compares two executions, node by node: status, model, inputs, result, error and time. Inputs and results that are too long for a list are not compared.',
    )
    .argument('<id>', 'the first execution, or the end of its id')
    .argument('<other>', 'the second execution, or the end of its id')
    .action(async (first, second, { dataDir, json }) => {
      const client = openClient(dataDir)
      const ids = await Promise.all([findExecution(client, first), findExecution(client, second)])
      const [before, after] = await Promise.all(ids.map(id => executionOf(client, id)))
      const pairs = pairNodes(before!.nodes ?? [], after!.nodes ?? [])
      if (json) return terminal.json({ executions: ids, nodes: pairs.map(jsonOf) })
      terminal.table(
        ['node', 'first', 'second', 'took', 'different'],
        pairs.map(pair => rowOf(pair, terminal.paint)),
      )
      const different = pairs.filter(({ different, before, after }) => different.length > 0 || !before || !after).length
      terminal.remark(
        different === 0 ? `All ${pairs.length} nodes are the same.` : `${different} of ${pairs.length} nodes differ.`,
      )
    })
  withExamples(compare, [
    ['infer execution compare 7QK2M9XD 4HT1W0ZB', 'by the ends of their ids'],
    ['infer execution compare exec_… exec_… --json', 'for scripts'],
  ])
}

const jsonOf = ({ id, before, after, different }: NodePair) => ({
  node_id: id,
  status: [before?.status ?? null, after?.status ?? null],
  duration_ms: [before?.duration_ms ?? null, after?.duration_ms ?? null],
  different,
})

function rowOf({ id, before, after, different }: NodePair, paint: Paint): string[] {
  const status = (node: typeof before) => (node ? jobStatusText(node.status, paint) : '-')
  const took = (node: typeof before) => (node?.duration_ms == null ? '-' : tookText(node.duration_ms))
  const why = !before ? 'only in the second' : !after ? 'only in the first' : different.join(', ') || '='
  return [printable(id), status(before), status(after), `${took(before)} / ${took(after)}`, why]
}
