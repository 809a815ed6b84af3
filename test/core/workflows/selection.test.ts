import { expect, test } from 'vitest'
import { Dag } from '../../../core/dag/definition.ts'
import { Failure } from '../../../core/failure.ts'
import { type Selection, selectedPart } from '../../../core/workflows/selection.ts'

const node = (text: string, more: object = {}) => ({
  model_id: 'm',
  task: 'std/chat-completion',
  inputs: { messages: [{ role: 'user', content: text }] },
  ...more,
})

/** a → b → d, and c → d by an edge; `b` has a pin of its own. */
const dag = Dag.parse({
  nodes: {
    a: node('${input.topic}'),
    b: node('${nodes.a.result.id}', { pin: { id: 'stored' } }),
    c: node('${input.tone}'),
    d: node('${nodes.b.result.id}'),
    e: node('${nodes.d.result.id} ${input.unknown}'),
  },
  edges: [{ from: 'c', to: 'd' }],
})
const parameters = { topic: { type: 'string' as const }, tone: { type: 'string' as const } }

/** The nodes of the part, with the pins that count; its edges and parameters. */
function part(selection: Selection): string {
  const { dag: chosen, parameters: declared, unused } = selectedPart({ dag, parameters }, selection)
  const nodes = Object.entries(chosen.nodes).map(([id, { pin }]) =>
    pin === undefined ? id : `${id}=${JSON.stringify((pin as { id?: unknown }).id ?? pin)}`,
  )
  const edges = chosen.edges.map(({ from, to }) => `${from}>${to}`)
  return [...nodes, ...edges, `(${Object.keys(declared!).join(' ')})`, ...[...unused].map(name => `-${name}`)].join(' ')
}

test.each<[string, Selection, string]>([
  ['without a selection all nodes run, without stored pins', {}, 'a b c d e c>d (topic tone)'],
  ['stored pins count where asked', { usePins: true }, 'a b="stored" c d e c>d (topic tone)'],
  [
    'a pin of the request counts before a stored one',
    { usePins: true, pins: { b: { id: 'sent' } } },
    'a b="sent" c d e c>d (topic tone)',
  ],
  ['null leaves a stored pin out', { usePins: true, pins: { b: null } }, 'a b c d e c>d (topic tone)'],
  ['to a node: what comes before', { to: 'b' }, 'a b (topic) -tone -unknown'],
  ['to a node: by edges too', { to: 'd' }, 'a b c d c>d (topic tone) -unknown'],
  ['to a node: nothing before a pinned one', { to: 'd', usePins: true }, 'b="stored" c d c>d (tone) -topic -unknown'],
  ['to a node that has a pin: it runs', { to: 'b', usePins: true }, 'a b (topic) -tone -unknown'],
  ['only a node without references', { only: ['a'] }, 'a (topic) -tone -unknown'],
  ['only a node with a stored pin before it', { only: ['d'], usePins: true }, 'b="stored" d () -topic -tone -unknown'],
  ['only two nodes, of which one needs the other', { only: ['b', 'a'] }, 'a b (topic) -tone -unknown'],
  ['only a node with a given result', { only: ['e'], pins: { d: { id: 1 } } }, 'd=1 e () -topic -tone'],
  ['a falsy pin is one', { pins: { d: 0, a: '' } }, 'a="" b c d=0 e c>d (tone) -topic'],
])('%s', (_, selection, expected) => {
  expect(part(selection)).toBe(expected)
})

test.each<[Selection, string, string]>([
  [{ only: ['d'] }, 'only', "The node 'd' needs the result of 'b'."],
  [{ only: ['a'], to: 'b' }, 'to', "'only' and 'to' exclude each other."],
  [{ to: 'aa' }, 'to', "The workflow has no node 'aa'."],
  [{ only: ['a', 'x'] }, 'only[1]', "The workflow has no node 'x'."],
  [{ pins: { x: 1 } }, 'pins.x', "The workflow has no node 'x'."],
  [{ to: 'd', pins: { d: 1 } }, 'pins.d', "The node 'd' cannot both run and be pinned."],
])('%j is refused', (selection, param, message) => {
  const thrown = (() => {
    try {
      return selectedPart({ dag, parameters }, selection)
    } catch (caught) {
      return caught
    }
  })()
  expect(thrown).toBeInstanceOf(Failure)
  expect(thrown).toMatchObject({ param, message: expect.stringContaining(message) as string })
})

test('a definition stays as it is', () => {
  const before = structuredClone(dag)
  part({ to: 'd', pins: { b: 1 } })
  expect(dag).toEqual(before)
})
