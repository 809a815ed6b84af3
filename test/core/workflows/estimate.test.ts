import { expect, test } from 'vitest'
import { estimateOf, type NodeOutlook, spreadOf } from '../../../core/workflows/estimate.ts'
import { graphOf } from '../../../core/workflows/graph.ts'

test.each<[number[], number | null, number | null]>([
  [[], null, null],
  [[5], 5, 5],
  [[4, 1, 3, 2], 2, 4],
  [[0, 0], 0, 0],
  [Array.from({ length: 64 }, (_, at) => 64 - at), 32, 58],
])('of %j', (values, median, p90) => {
  expect(spreadOf(values)).toEqual({ median, p90 })
})

/** `a:100` has run once in 100 ms; `~100` is the average of its model; `?` is not known; `+50` waits so long before. */
function estimate(drawn: string, described: string) {
  const names: string[] = []
  const outlooks = described.split(' ').map((one): NodeOutlook => {
    const [, nodeId = '', modelId = '', how = '', ms = '', waits] = /^(\w+)@(\w+):([~?]?)(\d*)(?:\+(\d+))?$/.exec(one)!
    names.push(nodeId)
    return {
      nodeId,
      modelId,
      runs: how === '' ? [{ runMs: Number(ms), cost: Number(ms) }] : [],
      averageMs: how === '~' ? Number(ms) : null,
      waitingMs: waits === undefined ? null : Number(waits),
      free: false,
      maxCost: how === '' ? 2 * Number(ms) : null,
    }
  })
  const edges = drawn.split(' ').flatMap(pair => {
    const [from, to] = pair.split('>')
    return to === undefined ? [] : [{ from: from!, to }]
  })
  return estimateOf(graphOf(names, edges), outlooks)
}

test.each<[rule: string, drawn: string, described: string, path: string]>([
  ['one node', 'a', 'a@m:100', 'a 100 null'],
  ['nodes at the same time: the longest', 'a>c b>c', 'a@m:100 b@m:300 c@m:50', 'b>c 350 null'],
  ['waiting counts', 'a b', 'a@m:100+900 b@n:300+0', 'a 100 900'],
  ['a model is waited for once', 'a>b', 'a@m:100+900 b@m:300+900', 'a>b 400 900'],
  ['two models are waited for in turn', 'a>b', 'a@m:100+900 b@n:300+500', 'a>b 400 1400'],
  ['the average of a model stands for runs', 'a>b', 'a@m:~100 b@m:300', 'a>b 400 null'],
  ['an unknown node is on the way and not in the sum', 'a>b', 'a@m:100 b@m:?', 'a>b 100 null'],
  ['nothing is known', 'a', 'a@m:?', 'a null null'],
])('the longest way: %s', (_, drawn, described, path) => {
  const { criticalPath } = estimate(drawn, described)
  expect(`${criticalPath.nodes.join('>')} ${criticalPath.median} ${criticalPath.waitingMs}`).toBe(path)
})

test.each<[rule: string, count: number | null, cost: object, run: object]>([
  ['a known number counts', 5, { median: 20, p90: 40, maximum: 100 }, { median: 6, p90: 12 }],
  [
    'of an unknown one only the most is known',
    null,
    { median: null, p90: null, maximum: 600 },
    { median: null, p90: null },
  ],
])('a node with a list: %s', (_, count, cost, run) => {
  const items = { count, maximum: 30, parallel: 2 }
  const runs = [4, 8].map(value => ({ runMs: value / 2, cost: value }))
  const node = { nodeId: 'a', modelId: 'm', runs, averageMs: null, waitingMs: null, free: false, maxCost: 20, items }
  const found = estimateOf(graphOf(['a'], []), [node])
  expect(found.nodes[0]).toMatchObject({ cost: { median: 4, maximum: 20 }, run: { median: 2 } })
  expect(found.nodes[0]!.items!.all.cost).toMatchObject({ maximum: (count ?? 30) * 20 })
  expect(found.cost).toEqual({ ...cost, unknown: count === null ? ['a'] : [] })
  expect(found.criticalPath).toMatchObject(run)
})

test('what is unknown is named, and is in no sum', () => {
  const { cost, criticalPath, nodes } = estimate('a>b', 'a@m:100 b@n:?+5')
  expect(cost).toEqual({ median: 100, p90: 100, maximum: null, unknown: ['b'] })
  expect(criticalPath).toMatchObject({ median: 100, p90: 100, waitingMs: 5, unknown: ['b'] })
  expect(nodes[1]).toMatchObject({ runs: 0, cost: { median: null, p90: null, maximum: null }, run: { median: null } })
  expect(estimate('a', 'a@m:?').cost).toMatchObject({ median: null, p90: null, maximum: null })
  expect(estimate('a b', 'a@m:100 b@n:50').cost).toMatchObject({ median: 150, maximum: 300, unknown: [] })
})
