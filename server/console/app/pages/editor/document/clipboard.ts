import { stringify } from 'yaml'
import type { Edit } from './edits.ts'
import { insertWorkflow } from './source.ts'
import { isRecord, parseWorkflow, type Workflow } from './workflow-document.ts'

/**
 * Returns nodes and the edges between them as the text of a workflow of their own; undefined if there are none of them.
 * `value` is the workflow that has them.
 */
export function copiedText(value: unknown, ids: ReadonlySet<string>): string | undefined {
  const dag = isRecord(value) ? value.dag : undefined
  if (!isRecord(dag) || !isRecord(dag.nodes)) return undefined
  const nodes = Object.fromEntries(Object.entries(dag.nodes).filter(([id]) => ids.has(id)))
  if (Object.keys(nodes).length === 0) return undefined
  const edges = (Array.isArray(dag.edges) ? dag.edges : []).filter(
    edge => isRecord(edge) && ids.has(String(edge.from)) && ids.has(String(edge.to)),
  )
  return stringify({ dag: { nodes, ...(edges.length > 0 ? { edges } : {}) } })
}

/**
 * Returns the edit that adds the nodes of a text, such as copied nodes or a whole workflow; undefined if it has none. What
 * they take from each other they take from their copies; what they take from other nodes stays.
 */
export function pasteOf(text: string, into: Workflow): Edit | undefined {
  const { faults, value, workflow } = parseWorkflow(text)
  const dag = value?.dag
  if (faults.length > 0 || !isRecord(dag) || workflow.nodes.length === 0) return undefined
  return insertWorkflow(into, workflow, dag.nodes as Record<string, object>)
}
