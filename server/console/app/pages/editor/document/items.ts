import { everyItem, isOfResult } from '../../../../../../core/workflows/references.ts'
import type { JsonSchema } from '../../../api/schema.ts'
import { editorText } from '../../../text/editor.ts'
import type { NestedWorkflows } from './nested.ts'
import { isReference, outputText, referencesOfText } from './references.ts'
import { type KnownResults, resultSchema } from './results.ts'
import { schemaAt } from './schema.ts'
import { isRecord, type Path, type WorkflowNode } from './workflow-document.ts'

/** What the list of a node is called: `split.chunks`, the name of a parameter, or how many items it has. */
export function listName(list: unknown): string {
  if (Array.isArray(list)) return editorText.items(list.length)
  const [reference] = typeof list === 'string' ? referencesOfText(list) : []
  if (!reference) return typeof list === 'string' ? list : editorText.items(0)
  const { root, path } = reference
  return outputText(root === 'nodes' && isOfResult(path) ? [path[0]!, ...path.slice(2)] : path)
}

/** The schema of the items of a node's list, and the one that has its definitions; undefined if it is not known. */
export function itemSchemaOf(
  { for_each: list }: Pick<WorkflowNode, 'for_each'>,
  nodes: readonly WorkflowNode[],
  { tasks, nested }: KnownResults,
): { schema: JsonSchema; root: JsonSchema } | undefined {
  if (Array.isArray(list)) {
    const schema = schemaOfValue(list[0])
    return { schema, root: schema }
  }
  const [reference] = isReference(list) ? referencesOfText(list as string) : []
  if (reference?.root !== 'nodes' || !isOfResult(reference.path)) return undefined
  const [id, , ...path] = reference.path
  const source = nodes.find(node => node.id === String(id))
  if (!source) return undefined
  const place = placeIn(source, path, nested)
  if (!place) return undefined
  const { schema: whole, root } = resultSchema(place.node, tasks)
  const { steps } = place
  const lists = path.filter(step => step === everyItem).length
  const schema = lists > 1 ? undefined : schemaAt(whole, root, lists === 1 ? steps : [...steps, everyItem])
  return schema && { schema, root }
}

/** The node whose result has the value at a path in the result of `source`, which may run a workflow, and the path there. */
function placeIn(
  source: WorkflowNode,
  path: Path,
  nested: NestedWorkflows,
): { node: Pick<WorkflowNode, 'task' | 'for_each'>; steps: Path } | undefined {
  const inner = nested.get(source.id)
  if (!inner) return { node: source, steps: path }
  const [id, member, ...steps] = source.for_each === undefined ? path : path.slice(1)
  const node = inner.find(one => one.id === String(id))
  return node && member === 'result' ? { node, steps } : undefined
}

/** A schema that a value fits, as far as the editor reads schemas. */
function schemaOfValue(value: unknown): JsonSchema {
  if (isRecord(value))
    return {
      type: 'object',
      properties: Object.fromEntries(Object.entries(value).map(([name, part]) => [name, schemaOfValue(part)])),
    }
  if (Array.isArray(value)) return { type: 'array', items: schemaOfValue(value[0]) }
  const isUnknown = value === null || value === undefined || (typeof value === 'string' && value.includes('${'))
  return isUnknown ? {} : { type: typeof value }
}
