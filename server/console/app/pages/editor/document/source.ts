import { stringify } from 'yaml'
import { type Schema } from '../../../api/schema.ts'
import { editorText } from '../../../text/editor.ts'
import { taskName } from '../../../text/tasks.ts'
import { addEdge, addNode, type Edit, moveNode, setValue, together } from './edits.ts'
import { placeForNode } from './graph.ts'
import { replaceReferences } from './references.ts'
import { firstInputs, type TaskFacts } from './schema.ts'
import type { Workflow, WorkflowNode } from './workflow-document.ts'

/** A workflow as the API returns it. */
type StoredWorkflow = Record<'name' | 'region' | 'on_failure', string> &
  Pick<Schema<'Workflow'>, 'description' | 'timeout' | 'parameters'> & {
    dag?: { nodes: Record<string, object>; edges?: { from: string; to: string }[] }
  }

/** Writes a stored workflow as YAML; fields with their defaults are left out. */
export function sourceOf({ name, description, region, timeout, on_failure, parameters, dag }: StoredWorkflow): string {
  const nodes = Object.entries(dag?.nodes ?? {}).map(([id, node]) => [id, tidyNode(node as Record<string, unknown>)])
  const workflow = {
    name,
    description: description || undefined,
    region: region === 'Global' ? undefined : region,
    timeout: timeout === 3_600 ? undefined : timeout,
    on_failure: on_failure === 'fail_fast' ? undefined : on_failure,
    parameters: parameters ?? undefined,
    dag: { nodes: Object.fromEntries(nodes), edges: dag?.edges?.length ? dag.edges : undefined },
  }
  return stringify(workflow, { lineWidth: 0, aliasDuplicateObjects: false })
}

const tidyNode = ({ outputs, on_error, ...node }: Record<string, unknown>): Record<string, unknown> => ({
  ...node,
  outputs: Array.isArray(outputs) && outputs.length > 0 ? outputs : undefined,
  on_error: on_error === 'fail' ? undefined : on_error,
})

/** The text of a workflow that has nothing yet. */
export const emptySource = (name: string): string => stringify({ name, dag: { nodes: {} } })

/** The first free id: `image`, `image2`, `image3`. */
export function freeId(wish: string, taken: ReadonlySet<string>): string {
  if (!taken.has(wish)) return wish
  let number = 2
  while (taken.has(`${wish}${number}`)) number++
  return `${wish}${number}`
}

/** The id that a node gets: the last word of the name of its task, such as `image` for `Text to image`. */
const idForTask = (name: string): string => name.toLowerCase().replace(/^.* /, '')

/** Messages with which a new node can be run at once. */
const firstMessages = [{ role: 'user', content: editorText.firstMessage }]

/** Where a card stands, by the id of its node. */
type SeenPlaces = readonly { id: string; at: { x: number; y: number } }[]

/**
 * Adds a node for a task. `drop` says where a person put it: then the others stay where they are `seen`. Without it the
 * node stands beside those that people have placed, or is arranged with all others.
 */
export function newNode(
  task: TaskFacts,
  nodes: readonly WorkflowNode[],
  drop?: { at: { x: number; y: number }; seen: SeenPlaces },
): { id: string; edit: Edit } {
  const id = freeId(idForTask(taskName(task.id)), new Set(nodes.map(node => node.id)))
  const place = drop?.at ?? placeForNode(nodes)
  const [model] = task.models
  const node = {
    ...(model === undefined ? {} : { model_id: model }),
    task: task.id,
    inputs: {
      ...firstInputs(task.input_schema),
      ...(task.form.panel === 'conversation' ? { messages: firstMessages } : {}),
    },
  }
  const unplaced = new Set(nodes.filter(({ position }) => !position).map(one => one.id))
  const kept = (drop?.seen ?? []).filter(one => unplaced.has(one.id)).map(({ id, at }) => moveNode(id, at.x, at.y))
  return { id, edit: together(...kept, addNode(id, node), ...(place ? [moveNode(id, place.x, place.y)] : [])) }
}

/**
 * Inserts the nodes, edges and parameters of another workflow. Ids and names that are taken get a number, in references
 * too.
 */
export function insertWorkflow(into: Workflow, other: Workflow, nodes: Record<string, object>): Edit {
  const ids = newNames(
    other.nodes.map(({ id }) => id),
    new Set(into.nodes.map(({ id }) => id)),
  )
  const names = newNames(
    other.parameters.map(({ name }) => name),
    new Set(into.parameters.map(({ name }) => name)),
  )
  const renamed = (text: string) =>
    replaceReferences(text, ({ root, path: [first, ...rest] }) => {
      const next = (root === 'nodes' ? ids : root === 'input' ? names : new Map<string, string>()).get(String(first))
      return next === undefined ? undefined : { root, path: [next, ...rest] }
    })
  return together(
    ...other.parameters.map(({ name, parameter }) => setValue(['parameters', names.get(name)!], { ...parameter })),
    ...other.nodes.map(({ id }) => {
      const { position: _, ...node } = mapTexts(nodes[id], renamed) as Record<string, unknown>
      return addNode(ids.get(id)!, tidyNode(node))
    }),
    ...other.edges.map(({ from, to }) => addEdge(ids.get(from) ?? from, ids.get(to) ?? to)),
  )
}

function newNames(names: readonly string[], taken: Set<string>): Map<string, string> {
  const used = new Set(taken)
  return new Map(
    names.map(name => {
      const next = freeId(name, used)
      used.add(next)
      return [name, next]
    }),
  )
}

function mapTexts(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === 'string') return change(value)
  if (Array.isArray(value)) return value.map(one => mapTexts(one, change))
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, mapTexts(part, change)]))
}
