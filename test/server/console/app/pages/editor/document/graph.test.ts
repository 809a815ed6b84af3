import { expect, test } from 'vitest'
import { layoutGraph } from '../../../../../../../server/console/app/components/graph/layout.ts'
import { mediaIn, resultTextIn } from '../../../../../../../server/console/app/components/result/result-facts.ts'
import {
  graphOf,
  parametersId,
  placedCards,
  placeForNode,
} from '../../../../../../../server/console/app/pages/editor/document/graph.ts'
import {
  cardKey,
  idOfCard,
  inputHandle,
  inputOfHandle,
  outputHandle,
  outputOfHandle,
  portsOf,
} from '../../../../../../../server/console/app/pages/editor/document/ports.ts'
import {
  outputReference,
  valueLinksOf,
} from '../../../../../../../server/console/app/pages/editor/document/references.ts'
import { resultOf } from '../../../../../../../server/console/app/pages/editor/document/results.ts'
import { parseWorkflow } from '../../../../../../../server/console/app/pages/editor/document/workflow-document.ts'

const tasks = new Map()

const text = (position = '') => `name: A
dag:
  nodes:
    a: { task: std/completion, inputs: { prompt: '\${input.x}' }${position} }
    b: { task: std/completion, inputs: { prompt: '\${nodes.a.result.choices[0].text}' } }
    c: { task: std/completion, inputs: { prompt: '\${nodes.gone.result}' } }
  edges: [{ from: a, to: b }, { from: b, to: c }, { from: b, to: nobody }]
`
const graph = (source: string) => graphOf(parseWorkflow(source).workflow, tasks, new Set(), false)
const placed = (source: string) => {
  const { cards, edges } = graph(source)
  return placedCards(cards, layoutGraph({ boxes: cards, lines: edges }))
}

test('references and edges become lines, once, between cards that exist', () => {
  const { cards, edges } = graph(text())
  expect(cards.map(({ id }) => id)).toEqual([parametersId, 'a', 'b', 'c'])
  expect(edges.map(({ from, to, link }) => [from, to, link?.source])).toEqual([
    [parametersId, 'a', 'input.x'],
    ['a', 'b', 'nodes.a.result.choices[0].text'],
    ['b', 'c', undefined],
  ])
  // Every line ends at a port that its cards have.
  for (const { from, fromPort, to, toPort, link } of edges.filter(edge => edge.link)) {
    const portsAt = (id: string) => cards.find(card => card.id === id)!.ports
    expect(
      portsAt(from).outputs.map(({ path }) => outputHandle(path)),
      link!.source,
    ).toContain(fromPort)
    expect(portsAt(to).inputs.map(({ path }) => inputHandle(path))).toContain(toPort)
  }
})

test('cards stand in the order of execution, and where people have put them', () => {
  const [parameters, a, b, c] = placed(text()).map(({ at }) => at)
  expect(parameters!.x).toBeLessThan(a!.x)
  expect(a!.x).toBeLessThan(b!.x)
  expect(b!.x).toBeLessThan(c!.x)
  expect(placed(text(', position: { x: 7, y: -5 }'))[1]!.at).toEqual({ x: 7, y: -5 })
  const { nodes } = parseWorkflow(text(', position: { x: 7, y: -5 }')).workflow
  expect(placeForNode(nodes)).toEqual({ x: 351, y: -5 })
  expect(placeForNode(parseWorkflow(text()).workflow.nodes)).toBeUndefined()
})

test('cards without a place are not shown, and the parameters stand left of what people have placed', () => {
  const { cards } = graph(text(', position: { x: 7, y: -5 }'))
  expect(placedCards(cards, new Map()).map(({ id, at }) => [id, at.y])).toEqual([
    [parametersId, -5],
    ['a', -5],
  ])
  expect(placedCards(graph(text()).cards, new Map())).toEqual([])
})

test.each([[['a "b"', 0, "c'd"]], [['messages', 1, 'content']], [['ü {x}']]])('ports of %j survive', path => {
  expect(inputOfHandle(inputHandle(path))).toEqual(path)
  expect(inputHandle(path)).not.toMatch(/["\\]/)
  expect(outputOfHandle(outputHandle(String(path[0])))).toBe(path[0])
})

test('a node shows the outputs that are taken, kept or wanted, and with all the whole result as a tree', () => {
  const choice = { type: 'object', properties: { text: { type: 'string' }, index: { type: 'integer' } } }
  const output_schema = {
    type: 'object',
    properties: { id: { type: 'string' }, choices: { type: 'array', items: choice } },
  }
  const task = { input_schema: { type: 'object', properties: {} }, output_schema, media_fields: [] }
  const { workflow } = parseWorkflow(text())
  const node = { ...workflow.nodes[0]!, outputs: ['usage'] }
  const known = { tasks: new Map([[node.task, task]]), nested: new Map() }
  expect(resultOf(node, known)).toBe(resultOf(node, known))
  const shown = (outputs: boolean) =>
    portsOf(node, task as never, resultOf(node, known), valueLinksOf(workflow), { inputs: false, outputs }).outputs
  expect(shown(false).map(({ path }) => path)).toEqual(['choices[0].text', 'usage'])
  expect(shown(true).map(({ path, branch }) => [path, branch?.depth, branch?.label])).toEqual([
    ['usage', undefined, undefined],
    ['id', 0, 'id'],
    ['choices', 0, 'choices'],
    ['choices[0]', 1, '[0]'],
    ['choices[0].text', 2, 'text'],
    ['choices[0].index', 2, 'index'],
  ])
})

test.each([
  ['a', 'choices[0].text', '${nodes.a.result.choices[0].text}'],
  ['my node', '', '${nodes["my node"].result}'],
  ['a', '[0].x', '${nodes.a.result[0].x}'],
])('the reference to %s %s', (id, output, reference) => {
  expect(outputReference(id, output)).toBe(reference)
})

const image = { url: 'http://h/files/f/a.png?x=1', content_type: 'image/png', thumbnail_url: 'http://h/files/t.webp' }
test.each([
  [{ images: [image] }, [{ kind: 'image', url: image.url }]],
  [{ audio_url: '/files/f/a.mp3', format: 'mp3' }, [{ kind: 'audio', url: '/files/f/a.mp3' }]],
  [{ video: { url: '/files/f/v', content_type: 'video/mp4' } }, [{ kind: 'video', url: '/files/f/v' }]],
  [{ url: 'javascript:alert(1)', content_type: 'image/png' }, []],
  [{ logs_url: '/files/x', text: 'a' }, []],
  [null, []],
])('media in %j', (result, media) => {
  expect(mediaIn(result)).toEqual(media)
})

test.each([
  [{ choices: [{ message: { role: 'assistant', content: 'Hello' } }] }, 'Hello'],
  [{ text: 'Words', language: 'en' }, 'Words'],
  [{ data: [{ embedding: [1, 2] }] }, ''],
])('the text in %j', (result, words) => {
  expect(resultTextIn(result)).toBe(words)
})

test.for(['write', 'größe', 'a b', 'a"b', 'a\\b', "it's", '100%', '%22', 'a\nb'])(
  'the node id %j can be in a selector',
  id => {
    expect(idOfCard(cardKey(id))).toBe(id)
    expect(cardKey(id)).not.toMatch(/["\\\n]/)
  },
)

test('nodes with the names of members of every object have places', () => {
  const names = ['__proto__', 'constructor', 'toString']
  const boxes = names.map(id => ({ id, width: 10, height: 10 }))
  const places = layoutGraph({ boxes, lines: [{ from: '__proto__', to: 'constructor' }] })
  expect([...places.keys()]).toEqual(names)
})
