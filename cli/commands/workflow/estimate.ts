import type { Command } from '@commander-js/extra-typings'
import type { Dag, Parameters } from '../../../core/dag/definition.ts'
import { definedMembers } from '../../../core/members.ts'
import { moneyText } from '../../../core/money-text.ts'
import { type Api, memberOf, openClient } from '../../client/client.ts'
import { withCommon, withExamples } from '../../terminal/options.ts'
import { tookText } from '../../terminal/quantities-text.ts'
import { printable } from '../../terminal/styled-line.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { isFile, readParameters, readWorkflowFile } from '../../workflows/document.ts'
import { parameterValues, readParameter, usedOf } from '../../workflows/parameters.ts'
import { pinsOf, readTexts } from '../../workflows/selection.ts'
import { findWorkflow } from '../../workflows/workflow.ts'

/** `infer workflow estimate <file|id|name>`: what a run would cost and how long it would take. */
export function define(command: Command, terminal: Terminal): void {
  const estimate = withCommon(command.command('estimate'))
    .summary('estimate cost and time of a run')
    .description(
      'Estimates what a run of a workflow would cost and how long it would take: from the last runs of the same tasks and models in the organization, from prices, and from the queue. Each node is taken to run once. What is not known is shown as ?.',
    )
    .argument('<workflow>', 'a file, or the id or the name of a workflow')
    .option('--param <name=value>', 'a parameter, repeatable; name=@path reads a file', readParameter)
    .option('--params <file>', 'parameters from a file, JSON or YAML; --param takes precedence')
    .option('--only <node>', 'exactly this node, repeatable', readTexts)
    .option('--to <node>', 'this node and those before it')
    .option(
      '--pin <node=result>',
      'a result instead of a run, as JSON, repeatable; node=@path reads a file',
      readParameter,
    )
    .option('--use-pins', 'use the pins of the workflow')
    .action(async (workflow, { param = [], params, only, to, pin, usePins: use_pins, dataDir, json }) => {
      const fromFile = params === undefined ? {} : readParameters(params)
      const client = openClient(dataDir)
      const { dag, parameters = null } = isFile(workflow)
        ? readWorkflowFile(workflow).document
        : (await findWorkflow(client, workflow, { orFile: true })).workflow
      const given = parameterValues(usedOf(fromFile, dag, parameters), param, parameters)
      const input_params = Object.fromEntries(Object.entries(given).filter(([name]) => !isMedium(name, parameters)))
      const body = definedMembers({ dag, parameters, input_params, only, to, pins: pinsOf(pin), use_pins })
      const found = await memberOf(client.api.POST('/api/workflows/estimate', { body }), 'estimate')
      if (json) return terminal.json({ estimate: found })
      terminal.table(['node', 'model', 'cost', 'at most', 'waits', 'runs', 'based on'], found.nodes.map(rowOf))
      for (const line of sumsOf(found, dag)) terminal.print(printable(line))
    })
  withExamples(estimate, [
    ['infer workflow estimate story.yaml', 'before it runs'],
    ['infer workflow estimate Story --to write --json', 'a part of a stored workflow, the response of the API'],
  ])
}

/** Files are not read for an estimate. */
const isMedium = (name: string, parameters: Parameters | null): boolean =>
  ['image', 'audio', 'video'].includes(parameters?.[name]?.type ?? '')

type Estimate = Api['WorkflowEstimate']

const money = (amount: number | null): string => (amount === null ? '?' : moneyText(amount))
const time = (ms: number | null): string => (ms === null ? '?' : tookText(ms))
/** The median, and the ninth tenth where it is another. */
const range = <Value>(median: Value | null, p90: Value | null, text: (value: Value | null) => string): string =>
  p90 === null || text(p90) === text(median) ? text(median) : `${text(median)} – ${text(p90)}`

const rowOf = ({ node_id, model_id, cost, run_ms, waiting_ms, runs, items }: Estimate['nodes'][number]): string[] => [
  printable(node_id) + (items ? ` × ${items.count ?? `up to ${items.maximum}`}` : ''),
  printable(model_id ?? '-'),
  range(cost.median, cost.p90, money),
  money(cost.maximum),
  time(waiting_ms),
  range(run_ms.median, run_ms.p90, time),
  runs === 0 ? '-' : `${runs} ${runs === 1 ? 'run' : 'runs'}`,
]

/** The sums in sentences. */
function sumsOf({ cost, critical_path: path }: Estimate, { nodes }: Dag): string[] {
  const without = (unknown: readonly string[]) => (unknown.length === 0 ? '' : `, without ${unknown.join(', ')}`)
  const waits = path.waiting_ms === null ? '' : ` and waits ${time(path.waiting_ms)}`
  const most = cost.maximum === null ? '' : `, at most ${money(cost.maximum)}`
  const length = path.nodes.length
  const way =
    length > 1 ? [`longest way: ${path.nodes.join(' → ')} (${length} of ${Object.keys(nodes).length} nodes)`] : []
  return [
    '',
    `cost: ${range(cost.median, cost.p90, money)}${most}${without(cost.unknown_nodes)}`,
    `time: ${range(path.median_ms, path.p90_ms, time)}${waits}${without(path.unknown_nodes)}`,
    ...way,
  ]
}
