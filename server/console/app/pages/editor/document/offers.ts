import { referenceText } from '../../../../../../core/workflows/references.ts'
import { editorText } from '../../../text/editor.ts'
import { parameterReference } from './edits.ts'
import { itemSchemaOf } from './items.ts'
import type { NestedWorkflows } from './nested.ts'
import { downstreamOf, outputReference, outputText } from './references.ts'
import { type KnownResults, resultOf } from './results.ts'
import { fieldsWithin, type OutputField, shapeOf } from './schema.ts'
import type { Workflow } from './workflow-document.ts'

/** A value that can be taken. */
export interface Offer {
  reference: string
  /** What it is called below the one that it is in: `content`, `[*]`. */
  label: string
  /** The whole path: `choices[0].message.content`. */
  name: string
  kind: string
  description: string
  children: Offer[]
}

/** Where a node can take a value from. */
export interface Offers {
  /** The item of its list and the position, if it has a list. */
  item: Offer[]
  parameters: Offer[]
  /** The nodes that can run before it, with what people mostly want of their results. */
  nodes: { id: string; main: Offer | undefined; all: Offer[] }[]
}

/**
 * What a node can take: for an input everything, with its item if it runs once for each item of a list; for that list only
 * what may be one.
 */
export function offersFor(
  workflow: Pick<Workflow, 'nodes' | 'edges' | 'parameters'>,
  tasks: KnownResults['tasks'],
  id: string,
  wanted: 'value' | 'list',
  nested: NestedWorkflows = new Map(),
): Offers {
  const after = downstreamOf(workflow, id)
  const isList = wanted === 'list'
  return {
    item: isList ? [] : itemOffers(workflow, { tasks, nested }, id),
    parameters: workflow.parameters
      .filter(({ parameter }) => !isList || parameter.type === 'array')
      .map(({ name, parameter: { type, description = '' } }) => ({
        reference: parameterReference(name),
        label: name,
        name,
        kind: type,
        description,
        children: [],
      })),
    nodes: workflow.nodes
      .filter(node => node.id !== id && !after.has(node.id))
      .map(node => {
        const { tree, main } = resultOf(node, { tasks, nested }, true)
        const offer = (field: OutputField): Offer => offerOf(field, path => outputReference(node.id, outputText(path)))
        if (tree.length === 0) {
          const whole = wholeResult(node.id)
          return { id: node.id, main: whole, all: [whole] }
        }
        if (!isList) {
          return { id: node.id, main: main && offer(main), all: tree.map(offer) }
        }
        const lists = flat(tree).filter(({ kind }) => kind === 'list' || kind === 'any')
        const [first] = lists
        const all = lists.map(field => ({ ...offer(field), label: outputText(field.path), children: [] }))
        return { id: node.id, main: first && all[0], all }
      }),
  }
}

/** The result of a node of which nothing else is known. */
const wholeResult = (id: string): Offer => ({
  reference: outputReference(id, ''),
  label: editorText.wholeResult,
  name: editorText.wholeResult,
  kind: 'any',
  description: '',
  children: [],
})

/** `${item}`, what is in it as far as it is known, and `${index}`. */
function itemOffers({ nodes }: Pick<Workflow, 'nodes'>, known: KnownResults, id: string): Offer[] {
  const node = nodes.find(one => one.id === id)
  if (node?.for_each === undefined) return []
  const found = itemSchemaOf(node, nodes, known)
  const { kinds, description } = found ? shapeOf(found.schema, found.root) : { kinds: [], description: '' }
  const within = found ? fieldsWithin(found.schema, found.root, []) : []
  const item = (path: OutputField['path']) => referenceText('item', path)
  return [
    {
      reference: item([]),
      label: 'item',
      name: 'item',
      kind: kinds[0] ?? 'any',
      description,
      children: within.map(field => offerOf(field, item, 'item')),
    },
    {
      reference: referenceText('index', []),
      label: 'index',
      name: 'index',
      kind: 'integer',
      description: '',
      children: [],
    },
  ]
}

const offerOf = (
  { path, label, kind, description, children }: OutputField,
  reference: (path: OutputField['path']) => string,
  root = '',
): Offer => ({
  reference: reference(path),
  label,
  name: root === '' ? outputText(path) : outputText([root, ...path]),
  kind,
  description,
  children: children.map(child => offerOf(child, reference, root)),
})

const flat = (fields: readonly OutputField[]): OutputField[] =>
  fields.flatMap(field => [field, ...flat(field.children)])
