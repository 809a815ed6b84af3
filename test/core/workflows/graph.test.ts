import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Dag } from '../../../core/dag/definition.ts'
import {
  graphEdges,
  graphOf,
  impliedEdges,
  nodeReferences,
  ranksOf,
  reachOf,
  shortestCycle,
} from '../../../core/workflows/graph.ts'

/** `a>b c>d`: edges; a name alone is a node without any. */
function graph(text: string) {
  const pairs = text.split(' ').map(part => part.split('>'))
  const edges = pairs.flatMap(([from, to]) => (to ? [{ from: from!, to }] : []))
  return graphOf([...new Set(pairs.flat())], edges)
}

test.for([
  ['one', 'a', [['a']]],
  ['a chain', 'a>b b>c', [['a'], ['b'], ['c']]],
  ['two that do not know each other', 'a b', [['a', 'b']]],
  ['apart and together', 'a>b a>c b>d c>d', [['a'], ['b', 'c'], ['d']]],
  ['a long and a short way', 'a>b b>c a>c', [['a'], ['b'], ['c']]],
  ['doubled edges count once', 'a>b a>b', [['a'], ['b']]],
  ['an edge to itself is none', 'a>a a>b', [['a'], ['b']]],
  ['a circle has no order', 'a>b b>a', undefined],
] as const)('ranks of %s', ([, text, ranks]) => {
  expect(ranksOf(graph(text))).toEqual(ranks)
})

test.for([
  ['none', 'a>b b>c', undefined],
  ['of two', 'a>b b>a', ['a', 'b', 'a']],
  ['the shortest of several', 'a>b b>c c>d d>a x>y y>x d>x', ['x', 'y', 'x']],
  ['behind others', 's>a a>b b>c c>a', ['a', 'b', 'c', 'a']],
] as const)('a cycle: %s', ([, text, cycle]) => {
  expect(shortestCycle(graph(text))).toEqual(cycle)
})

describe('edges implied by references', () => {
  const dag = (texts: Record<string, string>, edges: string[] = []) =>
    Dag.parse({
      nodes: Object.fromEntries(Object.entries(texts).map(([id, prompt]) => [id, { task: 't', inputs: { prompt } }])),
      edges: edges.map(edge => ({ from: edge[0], to: edge[2] })),
    })
  const found = (given: Dag) => {
    const { implied, circular } = impliedEdges(graphOf(Object.keys(given.nodes), given.edges), nodeReferences(given))
    return [implied.map(({ from, to }) => `${from}>${to}`), circular.map(({ node, target }) => `${target}>${node}`)]
  }

  test.for([
    ['nothing where the edge is drawn', { a: '', b: '${nodes.a.result.x}' }, ['a>b'], [], []],
    ['nothing where a way leads there', { a: '', b: '', c: '${nodes.a.result.x}' }, ['a>b', 'b>c'], [], []],
    ['an edge otherwise', { a: '', b: '${nodes.a.result.x} ${nodes.a.result.y}' }, [], ['a>b'], []],
    ['none to a node that is not there', { b: '${nodes.ghost.result.x}' }, [], [], []],
    ['none to itself', { b: '${nodes.b.result.x}' }, [], [], []],
    ['what is drawn goes before what is implied', { a: '${nodes.b.result.x}', b: '' }, ['a>b'], [], ['b>a']],
    [
      'of two that want each other one cannot',
      { a: '${nodes.b.result.x}', b: '${nodes.a.result.x}' },
      [],
      ['b>a'],
      ['a>b'],
    ],
  ] as const)('%s', ([, texts, edges, implied, circular]) => {
    expect(found(dag(texts as Record<string, string>, [...edges]))).toEqual([implied, circular])
  })
})

describe('of any graph', () => {
  const names = fc.integer({ min: 0, max: 9 }).map(String)
  const edges = fc.array(fc.record({ from: names, to: names }), { maxLength: 25, size: 'max' })
  const all = Array.from({ length: 10 }, (_, at) => String(at))

  test('there are ranks or there is a cycle, never both', () => {
    fc.assert(
      fc.property(edges, drawn => {
        const built = graphOf(all, drawn)
        const ranks = ranksOf(built)
        const cycle = shortestCycle(built)
        expect(ranks === undefined).toBe(cycle !== undefined)
        if (ranks) {
          const rankOf = new Map(ranks.flatMap((nodes, rank) => nodes.map(node => [node, rank])))
          for (const { from, to } of graphEdges(built)) expect(rankOf.get(from)!).toBeLessThan(rankOf.get(to)!)
        }
        if (cycle)
          for (const [at, node] of cycle.slice(1).entries()) expect(built.successors.get(cycle[at]!)).toContain(node)
      }),
    )
  })

  test('reachable nodes equal those of a search, also when edges are added later', () => {
    fc.assert(
      fc.property(edges, edges, (drawn, later) => {
        const reach = reachOf(graphOf(all, drawn))
        for (const { from, to } of later) if (from !== to) reach.add(from, to)
        const built = graphOf(all, [...drawn, ...later])
        for (const from of all) {
          const reached = new Set<string>()
          const walk = (node: string): void => {
            for (const after of built.successors.get(node)!) if (!reached.has(after)) walk((reached.add(after), after))
          }
          walk(from)
          expect(all.filter(to => reach.has(from, to))).toEqual(all.filter(to => reached.has(to)))
        }
      }),
    )
  })

  test('two thousand nodes whose references all lead backwards are validated without a noticeable delay', () => {
    const count = 2_000
    const nodes = Array.from({ length: count }, (_, at) => `n${at}`)
    const drawn = graphOf(
      nodes,
      nodes.slice(1).flatMap((to, at) => [
        { from: nodes[at]!, to },
        { from: nodes[at >> 1]!, to },
      ]),
    )
    const references = nodes.slice(0, -1).flatMap((node, at) =>
      [1, 7, 100].map(further => {
        const target = nodes[Math.min(at + further, count - 1)]!
        return { node, path: '', target, reference: { source: '', root: 'nodes' as const, path: [target] } }
      }),
    )
    const before = performance.now()
    const { implied, circular } = impliedEdges(drawn, references)
    expect([implied.length, circular.length > 5_000]).toEqual([0, true])
    // A search for each of them took half a minute.
    expect(performance.now() - before).toBeLessThan(5_000)
  })
})
