import type { Command } from '@commander-js/extra-typings'
import { dataDirectory } from '../../core/config.ts'
import { nearest } from '../../core/nearest.ts'
import { isWithoutModel, taskRecords } from '../../core/tasks/registry.ts'
import type { TaskRecord } from '../../core/tasks/task.ts'
import { openClient } from '../client/client.ts'
import { drawRows } from '../help/manual.ts'
import { fetchOfferedModels } from '../models/status.ts'
import { hasServer } from '../server/with-server.ts'
import { usageFailure } from '../terminal/exit-codes.ts'
import { withCommon, withExamples, withJson } from '../terminal/options.ts'
import { printable } from '../terminal/styled-line.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { fieldsOf, schemaOf, type TaskField } from './task-fields.ts'

/** `infer task …`: the tasks that models can perform. */
export function define(command: Command, terminal: Terminal): void {
  defineList(command.command('list'), terminal)
  defineShow(command.command('show'), terminal)
  withExamples(command, [
    ['infer task list', 'the tasks that models can perform'],
    ['infer task show text-to-image', 'the fields of its requests and results'],
  ])
}

/** `infer task list`: lists every task and, if a server runs, the models that perform it. */
function defineList(list: Command, terminal: Terminal): void {
  withCommon(list)
    .summary('list the tasks and the models that perform them')
    .description(
      'Lists the tasks that models can perform, and the tasks of workflow nodes that need no model. If a server runs, also lists the models of each task.',
    )
    .action(async ({ dataDir, json }) => {
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

/** `infer task show <task>`: shows the request and result fields of a task. */
function defineShow(show: Command, terminal: Terminal): void {
  withJson(show)
    .summary('show the inputs and results of a task')
    .description(
      'Shows the fields of the requests and results of a task in jobs and workflows. With --json prints both as JSON Schemas. Needs no server.',
    )
    .argument('<task>', 'the task, with or without its prefix')
    .action((name, { json }) => {
      const task = taskOf(name)
      const { id, title, category } = task
      const inputs = schemaOf(task.request, 'input')
      const result = schemaOf(task.result, 'output')
      if (json) return terminal.json({ task: id, title, category, inputs, result })
      const width = terminal.isTerminal ? terminal.stdout.columns || 80 : Number.MAX_SAFE_INTEGER
      const rows = (fields: readonly TaskField[], marks: boolean) =>
        drawRows(
          fields.map(field => [field.path, describe(field, marks)]),
          width,
        )
      const { paint } = terminal
      terminal.print(
        [
          `${paint.strong(id)}  ${title}`,
          '',
          paint.strong('inputs'),
          // Steps have few fields, and their parts are what matters.
          ...rows(fieldsOf(inputs, { deep: isWithoutModel(task) }), true),
          '',
          paint.strong('result'),
          ...rows(fieldsOf(result, { deep: true }), false),
        ].join('\n'),
      )
    })
  withExamples(show, [
    ['infer task show text-to-image', 'its inputs and its result'],
    ['infer task show std/rerank --json', 'both as JSON Schemas'],
  ])
}

function taskOf(name: string): TaskRecord {
  const found = taskRecords.find(
    ({ id, aliases }) => id === name || id.split('/')[1] === name || aliases.includes(name),
  )
  if (found) return found
  const closest = nearest(
    name,
    taskRecords.flatMap(({ id }) => [id, id.split('/')[1]!]),
  )
  throw usageFailure(
    `There is no task '${printable(name)}'. ${closest === undefined ? '' : `Did you mean '${closest}'? `}See: infer task list`,
  )
}

const describe = ({ type, isRequired, description }: TaskField, marks: boolean): string =>
  [`${type}${marks && isRequired ? ', required' : ''}`, description].filter(Boolean).join('. ')
