import type { Parameter, ParameterType } from '../../../core/dag/definition.ts'
import { impliedBy, type Task } from '../../../core/schemas/task.ts'
import type { WorkflowRecord } from '../../../core/store/workflows.ts'
import { modelTaskRecords, taskRecord } from '../../../core/tasks/registry.ts'
import type { ClientExchange } from '../../http/request/exchange.ts'
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
const toolTasks: readonly Task[] = modelTaskRecords.map(({ id }) => id).filter(id => impliedBy[id] === undefined)
const nameOf = (task: Task) => task.slice(task.indexOf('/') + 1).replaceAll('-', '_')
const byName = new Map(toolTasks.map(task => [nameOf(task), task]))

/** Returns the task that a tool does; undefined if there is no such tool. */
export const taskOfTool = (name: string): Task | undefined => byName.get(name)

/** Returns one tool for each task that a model does which the token may use. */
export function taskTools(exchange: ClientExchange, owners: Owners<'registry'>): McpTool[] {
  return toolTasks.flatMap(task => {
    const models = modelsFor(task, exchange, owners)
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

/** How many workflows a page of tools has. */
const pageSize = 50
const prefix = 'workflow_'

/** Returns the id of the workflow that a tool executes; undefined for the name of another tool. */
export const workflowOfTool = (name: string): string | undefined =>
  name.startsWith(prefix) ? `wf_${name.slice(prefix.length)}` : undefined

const media: ReadonlySet<ParameterType> = new Set(['image', 'audio', 'video', 'file'])

function schemaOf({ type, default: preset, description, enum: values, minimum, maximum }: Parameter): object {
  const isMedia = media.has(type)
  const text = [description, isMedia ? `An http(s) URL, a data: URL or the id of a file (${type}).` : undefined]
  return {
    type: isMedia ? 'string' : type,
    ...(text.some(Boolean) ? { description: text.filter(Boolean).join(' ') } : {}),
    ...(preset === undefined ? {} : { default: preset }),
    ...(values ? { enum: values } : {}),
    ...(minimum == null ? {} : { minimum }),
    ...(maximum == null ? {} : { maximum }),
  }
}

/** Pure: returns the JSON Schema of the input parameters of a workflow. */
function parametersSchema(parameters: WorkflowRecord['parameters']): object {
  // A workflow that declares none accepts any.
  if (!parameters) return { type: 'object', additionalProperties: true }
  const entries = Object.entries(parameters)
  return {
    type: 'object',
    properties: Object.fromEntries(entries.map(([name, one]) => [name, schemaOf(one)])),
    required: entries.filter(([, one]) => one.required ?? one.default === undefined).map(([name]) => name),
    additionalProperties: false,
  }
}

/** Returns a page of the organization's workflows as tools, and the cursor of the next page. */
export async function workflowTools(
  exchange: ClientExchange,
  after: string | undefined,
  { workflows }: Owners<'workflows'>,
): Promise<{ tools: McpTool[]; next: string | null }> {
  const page = await workflows.list(exchange.caller.organizationId, { limit: pageSize, ...(after ? { after } : {}) })
  const tools = page.workflows.map(({ id, name, description, parameters }) => ({
    name: prefix + id.slice('wf_'.length),
    title: name,
    description: `Execute the workflow '${name}'.${description ? ` ${description}` : ''}`,
    inputSchema: parametersSchema(parameters),
    annotations: { readOnlyHint: false, destructiveHint: false, openWorldHint: true },
  }))
  return { tools, next: page.next }
}
