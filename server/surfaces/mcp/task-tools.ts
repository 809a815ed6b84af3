import { impliedBy, type Task } from '../../../core/schemas/task.ts'
import { taskRecord, taskRecords } from '../../../core/tasks/registry.ts'
import type { Call } from '../../http/request/call.ts'
import type { Owners } from '../../http/request/owners.ts'
import { schemasOfTask } from '../../views/task-schemas.ts'
import { modelsFor } from '../../work/allowed-models.ts'

/** A tool as `tools/list` shows it. */
export interface McpTool {
  name: string
  title: string
  description: string
  inputSchema: object
  outputSchema?: object
  annotations: object
}

/** The tasks that are tools: all that engines do. The others do the same work in OpenAI's form. */
const toolTasks = taskRecords.map(({ id }) => id).filter(id => impliedBy[id] === undefined)
const nameOf = (task: Task): string => task.slice(task.indexOf('/') + 1).replaceAll('-', '_')
const byName = new Map(toolTasks.map(task => [nameOf(task), task]))

/** Returns the task that a tool does; undefined if there is no such tool. */
export const taskOfTool = (name: string): Task | undefined => byName.get(name)

/** Returns one tool for each task that a model does which the token may use. */
export function taskTools(call: Call, owners: Pick<Owners, 'registry'>): McpTool[] {
  return toolTasks.flatMap(task => {
    const models = modelsFor(task, call, owners)
    if (models.length === 0) return []
    const { description, title, files, runner } = taskRecord(task)
    const { input, output } = schemasOfTask(task)
    const model = { type: 'string', enum: models, description: 'The model that does it.' }
    return {
      name: nameOf(task),
      title: title[0]!.toUpperCase() + title.slice(1),
      description,
      inputSchema: {
        ...input,
        properties: { model: models.length === 1 ? { ...model, default: models[0] } : model, ...input.properties },
        required: [...(models.length === 1 ? [] : ['model']), ...(input.required ?? [])],
      },
      // The format of a transcription decides its shape.
      ...(output.type === 'object' && runner !== 'transcription' ? { outputSchema: output } : {}),
      annotations: { readOnlyHint: files === undefined, destructiveHint: false, openWorldHint: false },
    }
  })
}
