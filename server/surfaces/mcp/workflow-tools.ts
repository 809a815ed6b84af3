import type { Parameter, ParameterType } from '../../../core/dag/definition.ts'
import type { WorkflowRecord } from '../../../core/store/workflows.ts'
import type { Call } from '../../http/request/call.ts'
import type { Owners } from '../../http/request/owners.ts'
import type { McpTool } from './task-tools.ts'

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
  call: Call,
  after: string | undefined,
  { workflows }: Pick<Owners, 'workflows'>,
): Promise<{ tools: McpTool[]; next: string | null }> {
  const page = await workflows.list(call.caller.organizationId, { limit: pageSize, ...(after ? { after } : {}) })
  const tools = page.workflows.map(({ id, name, description, parameters }) => ({
    name: prefix + id.slice('wf_'.length),
    title: name,
    description: `Execute the workflow '${name}'.${description ? ` ${description}` : ''}`,
    inputSchema: parametersSchema(parameters),
    annotations: { readOnlyHint: false, destructiveHint: false, openWorldHint: true },
  }))
  return { tools, next: page.next }
}
