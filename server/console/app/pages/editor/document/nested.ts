import type { JsonSchema } from '../../../api/schema.ts'
import type { Parameter, WorkflowNode } from './workflow-document.ts'

/** Whether a node runs a stored workflow. */
export const runsWorkflow = ({ task }: Pick<WorkflowNode, 'task'>): boolean => task === 'workflow/run'

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

/** The choice of a workflow: by name, or by id where several have the name. */
export function workflowOptions(workflows: readonly Named[], chosen: string): Named[] {
  const names = Map.groupBy(workflows, ({ name }) => name)
  const options = workflows.map(({ id, name }) =>
    names.get(name)!.length > 1 || chosen === id ? { id, name: `${name} (${id})` } : { id: name, name },
  )
  return chosen === '' || options.some(({ id }) => id === chosen) ? options : [...options, { id: chosen, name: chosen }]
}
