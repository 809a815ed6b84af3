import { type Command, Option } from 'commander'
import { executionStatuses } from '../../../core/dag/advance.ts'
import { type Client, openClient } from '../../client/client.ts'
import { storedSentence } from '../../client/command-hints.ts'
import { type Execution, ExecutionPage } from '../../executions/execution.ts'
import { listPath } from '../../executions/find.ts'
import { idText, jobStatusText } from '../../jobs/draw.ts'
import { type CommonOptions, readCount, readSince, withCommon, withExamples } from '../../terminal/options.ts'
import { type Paint, printable } from '../../terminal/paint.ts'
import { lengthText, tookText } from '../../terminal/quantities-text.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { findWorkflow, WorkflowPage } from '../../workflows/workflow.ts'

interface Options extends CommonOptions {
  workflow?: string
  status?: string
  since?: number
  limit: number
}

/** `infer execution list`: lists executions. */
export function define(command: Command, terminal: Terminal): void {
  const list = withCommon(command.command('list'))
    .summary('list executions, newest first')
    .description(
      'Lists the executions of the organization, newest first. On a narrow terminal shows the end of each id, which every command accepts.',
    )
    .option('--workflow <workflow>', 'only executions of this workflow, by id or name')
    .addOption(new Option('--status <status>', 'only executions in this state').choices([...executionStatuses]))
    .option('--since <time>', 'only executions created since: 30m, 2h, 7d or a date', readSince)
    .option('--limit <count>', 'maximum number, 1 to 100', readCount(1, 100), 20)
    .action(async ({ workflow, status, since, limit, json, dataDir }: Options) => {
      const client = openClient(dataDir)
      const workflow_id = workflow === undefined ? undefined : (await findWorkflow(client, workflow)).workflow.id
      const path = listPath({ workflow_id, status, created_after: since, limit })
      const page = await client.ask({ method: 'GET', path, answer: ExecutionPage })
      if (json) return terminal.json(page)
      if (page.executions.length === 0)
        return terminal.remark(
          (workflow ?? status ?? since)
            ? 'No execution matches.'
            : 'There are no executions yet. Run a workflow: infer workflow run story.yaml',
        )
      const width = terminal.isTerminal ? terminal.stdout.columns || 80 : 0
      const names = await namesOf(client, page.executions)
      terminal.table(
        ['id', 'status', 'workflow', 'done', 'age', 'took', 'note'],
        page.executions.map(one => rowOf(one, names, Date.now() / 1000, width, terminal.paint)),
      )
      if (page.has_more && limit < 100)
        terminal.remark(`There are more. Show them: --limit ${Math.min(100, limit * 5)}`)
    })
  withExamples(list, [
    ['infer execution list', 'the newest twenty'],
    ['infer execution list --workflow Story --status failed', 'failed executions of one workflow'],
  ])
}

/** Returns the names of workflows by id, for the 100 workflows that were changed last. */
async function namesOf(client: Client, executions: readonly Execution[]): Promise<Map<string, string>> {
  if (!executions.some(one => one.workflow_id)) return new Map()
  const path = '/api/workflows?limit=100'
  const { workflows } = await client.ask({ method: 'GET', path, answer: WorkflowPage })
  return new Map(workflows.map(({ id, name }) => [id, name]))
}

const rowOf = (
  { id, status, workflow_id, progress, created_at, duration_ms, error }: Execution,
  names: ReadonlyMap<string, string>,
  now: number,
  width: number,
  paint: Paint,
): string[] => [
  idText(id, width),
  jobStatusText(status, paint),
  workflow_id ? printable(names.get(workflow_id) ?? idText(workflow_id, width)) : 'a file',
  progress ? `${progress.completed} of ${progress.total}` : '-',
  lengthText(now - created_at),
  duration_ms == null ? '-' : tookText(duration_ms),
  storedSentence(error?.message ?? '').replaceAll(/\s+/g, ' '),
]
