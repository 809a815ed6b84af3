import { expect, test } from 'vitest'
import type { JsonSchema } from '../../../../../../../server/console/app/api/schema.ts'
import {
  disconnectList,
  type Edit,
  renameNode,
  takeList,
} from '../../../../../../../server/console/app/pages/editor/document/edits.ts'
import {
  editOfConnection,
  editOfCut,
  graphOf,
  sizeOf,
} from '../../../../../../../server/console/app/pages/editor/document/graph.ts'
import { listName } from '../../../../../../../server/console/app/pages/editor/document/items.ts'
import { type Offer, offersFor } from '../../../../../../../server/console/app/pages/editor/document/offers.ts'
import { listHandle, outputHandle } from '../../../../../../../server/console/app/pages/editor/document/ports.ts'
import {
  parseWorkflow,
  readDocument,
} from '../../../../../../../server/console/app/pages/editor/document/workflow-document.ts'

const chunk = { type: 'object', properties: { text: { type: 'string' }, length: { type: 'integer' } } }
const schemas: Record<string, JsonSchema> = {
  'text/split': { type: 'object', properties: { chunks: { type: 'array', items: chunk }, total: { type: 'integer' } } },
  'std/completion': { type: 'object', properties: { text: { type: 'string' } } },
}
const tasks = new Map(
  Object.entries(schemas).map(([id, output_schema]) => [
    id,
    {
      id,
      category: 'text',
      media_fields: [],
      input_schema: { type: 'object' },
      output_schema,
    },
  ]),
) as never

const text = `name: A
parameters:
  topics: { type: array }
  tone: { type: string }
dag:
  nodes:
    split: { task: text/split, inputs: {} }
    write: { task: std/completion, for_each: '\${nodes.split.result.chunks}', inputs: { prompt: '\${item.text}' } }
    join: { task: std/completion, inputs: { prompt: '\${nodes.write.result[*].text}' } }
    own: { task: std/completion, for_each: [{ name: a, size: 1 }, { name: b }], inputs: {} }
    third: { task: std/completion, for_each: '\${nodes.write.result}', inputs: {} }
    fourth: { task: std/completion, for_each: '\${input.topics}', inputs: {} }
`
const { workflow } = parseWorkflow(text)

/** All references of offers, in order. */
const references = (offers: readonly Offer[]): string[] =>
  offers.flatMap(({ reference, children }) => [reference, ...references(children)])

test.each([
  ['write', ['${item}', '${item.text}', '${item.length}', '${index}']],
  ['own', ['${item}', '${item.name}', '${item.size}', '${index}']],
  // The results of a node that runs for items are a list.
  ['third', ['${item}', '${item.text}', '${index}']],
  // What a caller sends is not known.
  ['fourth', ['${item}', '${index}']],
  ['join', []],
])('the inputs of %s are offered its item', (id, offered) => {
  expect(references(offersFor(workflow, tasks, id, 'value').item)).toEqual(offered)
})

test('results are offered with [*], those of a node that runs for items only so or by position', () => {
  const { nodes, parameters } = offersFor(workflow, tasks, 'join', 'value')
  expect(parameters.map(({ reference }) => reference)).toEqual(['${input.topics}', '${input.tone}'])
  const of = (id: string) => nodes.find(node => node.id === id)!
  // What people mostly want is one value.
  expect(of('split').main!.reference).toBe('${nodes.split.result.chunks[0].text}')
  expect(references(of('split').all)).toEqual([
    '${nodes.split.result.chunks}',
    '${nodes.split.result.chunks[*]}',
    '${nodes.split.result.chunks[*].text}',
    '${nodes.split.result.chunks[*].length}',
    '${nodes.split.result.chunks[0]}',
    '${nodes.split.result.chunks[0].text}',
    '${nodes.split.result.chunks[0].length}',
    '${nodes.split.result.total}',
  ])
  expect([of('write').main!.reference, of('write').main!.kind]).toEqual(['${nodes.write.result[*].text}', 'list'])
  expect(references(of('write').all)).toContain('${nodes.write.result[0].text}')
})

test('for a list only lists are offered, and nothing of nodes that run afterwards', () => {
  const { item, nodes, parameters } = offersFor(workflow, tasks, 'write', 'list')
  expect(item).toEqual([])
  expect(parameters.map(({ reference }) => reference)).toEqual(['${input.topics}'])
  expect(nodes.map(({ id }) => id)).toEqual(['split', 'own', 'fourth'])
  expect(nodes[0]!.main!.reference).toBe('${nodes.split.result.chunks}')
  expect(references(nodes[0]!.all)).not.toContain('${nodes.split.result.total}')
  expect(references(nodes[1]!.all)).toContain('${nodes.own.result[*].text}')
})

test.each([
  ['${nodes.split.result.chunks}', 'split.chunks'],
  ['${nodes.split.result}', 'split'],
  ['${nodes.write.result[*].text}', 'write[*].text'],
  ['${input.topics}', 'topics'],
  [[1, 2], '2 items'],
  [['a'], '1 item'],
  ['a text', 'a text'],
])('the list %j is called %s', (list, name) => {
  expect(listName(list)).toBe(name)
})

const { cards, edges } = graphOf(workflow, tasks, new Set(), false)
const cardOf = (id: string) => cards.find(card => card.id === id)!

test('a node that runs for items has a port for its list, and its result is a list', () => {
  const edge = edges.find(({ from, to }) => from === 'split' && to === 'write')!
  expect([edge.fromPort, edge.toPort]).toEqual([outputHandle('chunks'), listHandle])
  // The second is the whole list, which another node takes.
  const outputs = [
    { path: '[*].text', name: 'Text of every item', carries: 'list' },
    { path: '', name: 'Result', carries: 'list' },
  ]
  expect(cardOf('write').ports).toMatchObject({ list: 'split.chunks', outputs })
  expect(cardOf('join').ports.list).toBeUndefined()
  const { ports } = cardOf('write')
  expect(sizeOf(ports).height - sizeOf({ inputs: ports.inputs, outputs: ports.outputs }).height).toBe(24)
})

const nodesAfter = (edit: Edit) => {
  const { document } = parseWorkflow(text)
  edit(document)
  return readDocument(document, '').value as { dag: { nodes: Record<string, { for_each?: unknown }> } }
}
const listAfter = (id: string, edit: Edit) => nodesAfter(edit).dag.nodes[id]!.for_each

test('a list is taken, cut and renamed like an input', () => {
  const drag = editOfConnection('split', outputHandle('chunks'), 'join', listHandle)!
  expect(listAfter('join', drag)).toBe('${nodes.split.result.chunks}')
  expect(listAfter('join', takeList('join', '${input.topics}'))).toBe('${input.topics}')
  expect(listAfter('write', editOfCut(edges.find(({ to }) => to === 'write')!))).toBeUndefined()
  expect(listAfter('own', disconnectList('own', 'input.x'))).toEqual([{ name: 'a', size: 1 }, { name: 'b' }])
  expect(listAfter('write', renameNode('split', 'parts'))).toBe('${nodes.parts.result.chunks}')
})
