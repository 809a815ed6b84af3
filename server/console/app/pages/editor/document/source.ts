import { Document, stringify, type YAMLMap } from 'yaml'
import type { Reference } from '../../../../../../core/workflows/references.ts'
import { type Schema } from '../../../api/schema.ts'
import { addEdge, addNode, type Edit, setValue, together } from './edits.ts'
import { replaceInDefault, replaceReferences } from './references.ts'
import { isRecord, type Parsed, readDocument, type Workflow } from './workflow-document.ts'

/** A workflow as the API returns it. */
type StoredWorkflow = Record<'name' | 'region' | 'on_failure', string> &
  Pick<Schema<'Workflow'>, 'description' | 'timeout' | 'parameters'> &
  Partial<Pick<Schema<'Workflow'>, 'budget' | 'concurrency' | 'tags'>> & {
    dag?: { nodes: Record<string, object>; edges?: { from: string; to: string }[]; frames?: object[] }
  }

/** How workflows are written: no line is folded, and what is the same twice is written twice. */
const writing = { lineWidth: 0, aliasDuplicateObjects: false } as const

/** Writes a stored workflow as YAML; fields with their defaults are left out. */
export const sourceOf = (stored: StoredWorkflow): string => stringify(definitionOf(stored), writing)

/** How many nodes become a part of a document in one task. */
const slice = 50

const nextTask = (): Promise<void> => new Promise(done => setTimeout(done))

/**
 * Opens a stored workflow: its YAML as `sourceOf` writes it, and the document that parsing it would give, without parsing:
 * for hundreds of nodes that takes longer than all the rest. Works in tasks of some milliseconds each.
 */
export async function openStored(stored: StoredWorkflow): Promise<{ source: string; parsed: Parsed }> {
  const { dag, ...head } = definitionOf(stored)
  const document = new Document({ ...head, dag: { ...dag, nodes: {} } }, writing)
  const nodes = document.getIn(['dag', 'nodes']) as YAMLMap
  const entries = Object.entries(dag.nodes)
  for (let from = 0; from < entries.length; from += slice) {
    for (const [id, node] of entries.slice(from, from + slice)) nodes.items.push(document.createPair(id, node))
    await nextTask()
  }
  const source = document.toString(writing)
  await nextTask()
  return { source, parsed: readDocument(document, source) }
}

/** What the YAML of a stored workflow says. */
function definitionOf(stored: StoredWorkflow) {
  const { name, description, region, timeout, on_failure, tags, budget, concurrency, parameters, dag } = stored
  const nodes = Object.entries(dag?.nodes ?? {}).map(([id, node]) => [id, tidyNode(node as Record<string, unknown>)])
  return {
    name,
    description: description || undefined,
    tags: tags?.length ? tags : undefined,
    region: region === 'Global' ? undefined : region,
    timeout: timeout === 3_600 ? undefined : timeout,
    on_failure: on_failure === 'fail_fast' ? undefined : on_failure,
    budget: budget ?? undefined,
    concurrency: concurrency ?? undefined,
    parameters: parameters ?? undefined,
    dag: {
      nodes: Object.fromEntries(nodes),
      edges: dag?.edges?.length ? dag.edges : undefined,
      frames: dag?.frames?.length ? dag.frames : undefined,
    },
  }
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
  const rename = ({ root, path: [first, ...rest] }: Reference) => {
    const next = (root === 'nodes' ? ids : root === 'input' ? names : new Map<string, string>()).get(String(first))
    return next === undefined ? undefined : { root, path: [next, ...rest] }
  }
  const renamed = (text: string) => replaceReferences(text, rename)
  return together(
    ...other.parameters.map(({ name, parameter }) => setValue(['parameters', names.get(name)!], { ...parameter })),
    ...other.nodes.map(({ id }) => {
      // A pinned result is data, which may look like a reference.
      const { pin, ...described } = nodes[id] as Record<string, unknown>
      const { position: _, defaults, ...node } = mapTexts(described, renamed) as Record<string, unknown>
      const renamedDefaults = isRecord(defaults)
        ? Object.fromEntries(Object.entries(defaults).map(([name, value]) => [replaceInDefault(name, rename), value]))
        : undefined
      return addNode(ids.get(id)!, tidyNode({ ...node, defaults: renamedDefaults, pin: pin ?? undefined }))
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
