import type { Command } from 'commander'
import { openClient } from '../../client/client.ts'
import { readCount, withCommon, withExamples } from '../../terminal/options.ts'
import { printable } from '../../terminal/paint.ts'
import { timeText } from '../../terminal/quantities-text.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { WorkflowPage } from '../../workflows/workflow.ts'

/** `infer workflow list [words]`: lists stored workflows. */
export function define(command: Command, terminal: Terminal): void {
  const list = withCommon(command.command('list'))
    .summary('list the workflows, last changed first')
    .description('Lists the stored workflows of the organization, last changed first.')
    .argument('[words]', 'text in the name')
    .option('--limit <count>', 'maximum number, 1 to 100', readCount(1, 100), 20)
    .action(
      async (
        words: string | undefined,
        { limit, dataDir, json }: { limit: number; dataDir?: string; json?: boolean },
      ) => {
        const query = new URLSearchParams({ limit: String(limit), include: 'dag', ...(words ? { q: words } : {}) })
        const path = `/api/workflows?${query.toString()}`
        const page = await openClient(dataDir).ask({ method: 'GET', path, answer: WorkflowPage })
        if (json) return terminal.json(page)
        if (page.workflows.length === 0)
          return terminal.remark(
            words ? 'No workflow matches.' : 'No workflow is stored. Create one: infer workflow create story.yaml',
          )
        terminal.table(
          ['id', 'version', 'nodes', 'changed', 'name'],
          page.workflows.map(({ id, version, dag, updated_at, name }) => [
            id,
            String(version),
            String(Object.keys(dag?.nodes ?? {}).length),
            timeText(updated_at * 1000),
            printable(name),
          ]),
        )
        if (page.has_more) terminal.remark(`There are more. Show them: --limit ${Math.min(100, limit * 5)}`)
      },
    )
  withExamples(list, [
    ['infer workflow list', 'the newest twenty'],
    ['infer workflow list story --json', 'the response of the API'],
  ])
}
