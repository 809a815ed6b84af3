import type { Command } from 'commander'
import { dataDirectory } from '../../../core/config.ts'
import { taskRecords } from '../../../core/tasks/registry.ts'
import { openClient } from '../../client/client.ts'
import { fetchOfferedModels } from '../../models/offered-models.ts'
import { hasServer } from '../../server/with-server.ts'
import { type CommonOptions, withCommon, withExamples } from '../../terminal/options.ts'
import { printable } from '../../terminal/paint.ts'
import type { Terminal } from '../../terminal/terminal.ts'

/** `infer task list`: lists every task and, if a server runs, the models that perform it. */
export function define(list: Command, terminal: Terminal): void {
  withCommon(list)
    .summary('list the tasks and the models that perform them')
    .description('Lists the tasks that models can perform. If a server runs, also lists the models of each task.')
    .action(async ({ dataDir, json }: CommonOptions) => {
      const folder = dataDirectory(dataDir)
      const models = hasServer(folder) ? await fetchOfferedModels(openClient(folder)) : undefined
      const tasks = taskRecords.map(({ id, title, category }) => ({
        task: id,
        title,
        category,
        models: models?.filter(one => one.enabled !== false && one.tasks.includes(id)).map(one => one.model_id),
      }))
      if (json) return terminal.json({ tasks: tasks.map(task => ({ ...task, models: task.models ?? null })) })
      terminal.table(
        ['task', 'what', ...(models ? ['models'] : [])],
        tasks.map(one => [one.task, one.title, ...(models ? [printable(one.models!.join(' ') || '-')] : [])]),
      )
      terminal.remark('See the inputs and results of a task: infer task show text-to-image')
    })
  withExamples(list, [
    ['infer task list', 'as a table'],
    ['infer task list --json', 'for a program'],
  ])
}
