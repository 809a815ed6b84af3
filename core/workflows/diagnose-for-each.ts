import { defaultMaxItems, type WorkflowNode } from '../dag/definition.ts'
import { jsonType, type Kinds, kindsOf, kindsText, type SchemasAtPath, walk } from '../schemas/schema-walk.ts'
import { referencesIn } from './bind.ts'
import type { NodeContext, TaskType } from './diagnose-node.ts'
import { everyItem, isOfResult, type Reference, ReferenceFault, type ReferenceStep } from './references.ts'

const list: Kinds = new Set(['array'])

/** The types of the values that a path reads: with `[*]` it reads a list. */
export const kindsAt = (found: SchemasAtPath, path: readonly ReferenceStep[]): Kinds =>
  path.includes(everyItem) ? list : kindsOf(found)

/** What a path reads in the result of a node: `list` for the results of all items together. */
export function schemasInResult(
  { for_each }: Pick<WorkflowNode, 'for_each'>,
  { result }: Pick<TaskType, 'result'>,
  path: readonly ReferenceStep[],
): SchemasAtPath | 'list' {
  if (for_each === undefined) return walk(result, path)
  const [first, ...rest] = path
  if (first === undefined) return 'list'
  return typeof first === 'number' ? walk(result, rest) : 'missing'
}

/** Why a path into the result of a node is wrong, as a part of a sentence. */
export const missingInResult = (
  { for_each }: Pick<WorkflowNode, 'for_each'>,
  task: string,
  [first]: readonly ReferenceStep[],
): string =>
  for_each === undefined || typeof first === 'number'
    ? `results of ${task} have no such member`
    : `with 'for_each' the result is a list of results of ${task}, so write [*] or [0] and then a member`

/** Validates the list of a node and the fields that need one. `kinds`: the types of its reference, if it is one. */
export function diagnoseList(
  id: string,
  node: WorkflowNode,
  kinds: Kinds | undefined,
  { warn, issue }: Pick<NodeContext, 'warn' | 'issue'>,
): void {
  const { for_each, max_items = defaultMaxItems } = node
  if (for_each === undefined) {
    for (const field of ['max_parallel', 'max_items', 'on_item_error'] as const)
      if (node[field] !== undefined)
        warn('unknown_field', `Node '${id}': '${field}' has no effect without 'for_each'.`, { path: field })
    return
  }
  const path = 'for_each'
  if (Array.isArray(for_each)) {
    if (for_each.length > max_items)
      issue(
        'value_out_of_range',
        `Node '${id}': the list has ${for_each.length} items, and 'max_items' allows ${max_items}.`,
        { path },
      )
    return
  }
  const isReference = wholeReference(for_each) !== undefined
  const actual = isReference ? kinds : new Set(['string'])
  if (actual === undefined || actual === 'anything' || actual.has('array')) return
  issue(
    'type_mismatch',
    `Node '${id}': 'for_each' expects a list but ${for_each || 'the text'} is ${kindsText(actual)}.`,
    {
      path,
      expected: 'array',
      actual: kindsText(actual),
      ...(isReference ? { reference: for_each } : {}),
    },
  )
}

/** The reference that is the whole of a text. */
function wholeReference(text: string): Reference | undefined {
  const [found] = referencesIn(text, 'for_each')
  return found?.whole && !(found.reference instanceof ReferenceFault) ? found.reference : undefined
}

/** The types of `${item…}` or `${index}` in the inputs of a node with `for_each`; or why there is no such value. */
export function kindsOfItem(
  node: WorkflowNode,
  { root, path }: Reference,
  { dag, offer }: Pick<NodeContext, 'dag' | 'offer'>,
): Kinds | { missing: string } {
  if (root === 'index') return new Set(['integer'])
  const { for_each } = node
  if (Array.isArray(for_each)) return kindsOfLiterals(for_each, path)
  const source = for_each === undefined ? undefined : wholeReference(for_each)
  if (source?.root !== 'nodes' || !isOfResult(source.path)) return path.includes(everyItem) ? list : 'anything'
  const [name, , ...into] = source.path
  const target = Object.hasOwn(dag.nodes, String(name)) ? dag.nodes[String(name)] : undefined
  const type = target && offer.task(target.task)?.type
  const lists = into.filter(step => step === everyItem).length
  if (!type || lists > 1) return path.includes(everyItem) ? list : 'anything'
  const found = schemasInResult(target, type, [...into, ...(lists === 0 ? [everyItem] : []), ...path])
  if (found === 'missing' && path.length > 0)
    return { missing: `the items of ${for_each as string} have no such member` }
  return found === 'list' ? 'anything' : kindsAt(found, path)
}

function kindsOfLiterals(items: readonly unknown[], path: readonly ReferenceStep[]): Kinds | { missing: string } {
  const kinds = new Set<string>()
  for (const [at, item] of items.entries()) {
    let value = item
    for (const step of path) {
      if (step === everyItem || (typeof value === 'string' && value.includes('${'))) return 'anything'
      const isThere = value !== null && typeof value === 'object' && Object.hasOwn(value, step)
      if (!isThere) return { missing: `item ${at} of the list has no such member` }
      value = (value as Record<ReferenceStep, unknown>)[step]
    }
    if (typeof value === 'string' && value.includes('${')) return 'anything'
    kinds.add(jsonType(value))
  }
  return kinds.size === 0 ? 'anything' : kinds
}
