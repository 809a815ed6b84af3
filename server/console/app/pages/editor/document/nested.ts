import type { JsonSchema } from '../../../api/schema.ts'
import type { Parameter, WorkflowNode } from './workflow-document.ts'

/** Whether a node runs a stored workflow. */
export const runsWorkflow = ({ task }: Pick<WorkflowNode, 'task'>): boolean => task === 'workflow/run'

/** A node of a workflow that a node runs. */
export type NestedNode = Pick<WorkflowNode, 'id' | 'name' | 'task' | 'outputs' | 'for_each'>
/** The nodes of the workflows that nodes run, by the ids of these nodes; without those that are not known. */
export type NestedWorkflows = ReadonlyMap<string, readonly NestedNode[]>

/** Most workflows that are looked up for one graph. */
const maxLookedUp = 30

/** Which workflows the nodes of a graph run: by name or id, of which version, and the ids of the nodes that run them. */
export function namedWorkflows(
  nodes: readonly Pick<WorkflowNode, 'id' | 'task' | 'inputs'>[],
): { name: string; version: number | undefined; by: string[] }[] {
  const found = new Map<string, { name: string; version: number | undefined; by: string[] }>()
  for (const node of nodes) {
    const { workflow: name, version } = node.inputs
    // What references decide is known only when it runs.
    if (!runsWorkflow(node) || typeof name !== 'string' || name === '' || name.includes('${')) continue
    if (version !== undefined && !Number.isInteger(version)) continue
    const asked = version as number | undefined
    const key = `${asked ?? ''} ${name}`
    const one = found.get(key) ?? { name, version: asked, by: [] }
    found.set(key, { ...one, by: [...one.by, node.id] })
  }
  return [...found.values()].slice(0, maxLookedUp)
}

/** The types of parameters whose values are texts: addresses or ids of files. */
const media = ['image', 'audio', 'video', 'file']

/** The schema of the parameters of a workflow, for the form of a node that runs it. */
export function schemaOfParameters(parameters: Readonly<Record<string, Parameter>>): JsonSchema {
  const entries = Object.entries(parameters)
  return {
    type: 'object',
    properties: Object.fromEntries(entries.map(([name, parameter]) => [name, schemaOf(parameter)])),
    required: entries
      .filter(([, { required, default: value }]) => required ?? value === undefined)
      .map(([name]) => name),
  }
}

/** Null stands for what is not there, as in the API. */
function schemaOf({ type, description, enum: values, minimum, maximum }: Parameter): JsonSchema {
  return {
    ...(values ? { enum: values } : { type: media.includes(type) ? 'string' : type }),
    ...(description ? { description } : {}),
    ...(typeof minimum === 'number' ? { minimum } : {}),
    ...(typeof maximum === 'number' ? { maximum } : {}),
  }
}

interface Named {
  id: string
  name: string
}

/** The choice of a workflow: by name, or by id where several have the name. `known`: the workflow that is chosen, if it is read. */
export function workflowOptions(workflows: readonly Named[], chosen: string, known?: Named): Named[] {
  const names = Map.groupBy(workflows, ({ name }) => name)
  const options = workflows.map(({ id, name }) =>
    names.get(name)!.length > 1 || chosen === id ? { id, name: `${name} (${id})` } : { id: name, name },
  )
  if (chosen === '' || options.some(({ id }) => id === chosen)) return options
  const name = known && known.id === chosen ? `${known.name} (${chosen})` : chosen
  return [{ id: chosen, name }, ...options]
}
