import { expect, test } from 'vitest'
import { drawGraph } from '../../../cli/workflows/draw.ts'
import { graphOf } from '../../../core/workflows/graph.ts'

/** `a>b b>c` as a graph; a single name is a node without edges. */
function graphFrom(text: string) {
  const parts = text.split(' ').map(part => part.split('>') as [string, string?])
  const edges = parts.flatMap(([from, to]) => (to === undefined ? [] : [{ from, to }]))
  return graphOf([...new Set(parts.flat().filter(node => node !== undefined))], edges)
}

/** The drawing without colours. */
function draw(text: string, { width = 80, height = 100, live = [] as string[], lines = 1 } = {}): string[] {
  const label = (nodes: readonly string[]) => {
    const name = nodes.length > 1 ? `${nodes.length} more` : nodes[0]!
    return { lines: (lines === 1 ? [name] : [name, 'state']) as [string] }
  }
  const drawn = drawGraph({ graph: graphFrom(text), label, live: new Set(live) }, { width, height })
  return drawn.map(line =>
    line
      .map(span => span.text)
      .join('')
      .trimEnd(),
  )
}
const picture = (text: string): string[] => text.split('\n').slice(1, -1)

const fan = (count: number) => Array.from({ length: count }, (_, at) => `s>n${at} n${at}>join`).join(' ')
const chain = (count: number) => Array.from({ length: count - 1 }, (_, at) => `n${at}>n${at + 1}`).join(' ')

test.each<[name: string, graph: string, drawn: string]>([
  [
    'one node',
    'a',
    `
┌───┐
│ a │
└───┘
`,
  ],
  [
    'a chain of names of different lengths',
    'write>b',
    `
┌───────┐
│ write │
└───┬───┘
    │
  ┌─┴─┐
  │ b │
  └───┘
`,
  ],
  [
    'a fork and a join',
    'a>b a>c b>d c>d',
    `
   ┌───┐
   │ a │
   └─┬─┘
  ╭──┴───╮
┌─┴─┐  ┌─┴─┐
│ b │  │ c │
└─┬─┘  └─┬─┘
  ╰──┬───╯
   ┌─┴─┐
   │ d │
   └───┘
`,
  ],
  [
    'an edge that skips a rank goes past it',
    'a>b b>c a>c',
    `
 ┌───┐
 │ a │
 └─┬─┘
  ╭┴───╮
┌─┴─┐  │
│ b │  │
└─┬─┘  │
  ╰─┬──╯
  ┌─┴─┐
  │ c │
  └───┘
`,
  ],
  [
    'predecessors of one node are distinguished from those of both',
    'one>x two>y one>y',
    `
┌─────┐  ┌─────┐
│ one │  │ two │
└──┬──┘  └──┬──┘
  ╭┴────╮ ╭─╯
┌─┴─┐  ┌┴─┴┐
│ x │  │ y │
└───┘  └───┘
`,
  ],
  [
    'two crossing edges are drawn beside each other',
    'a>y b>x',
    `
┌───┐  ┌───┐
│ a │  │ b │
└─┬─┘  └─┬─┘
  │      │
┌─┴─┐  ┌─┴─┐
│ y │  │ x │
└───┘  └───┘
`,
  ],
])('%s', (_, graph, drawn) => {
  expect(draw(graph)).toEqual(picture(drawn))
})

test('edges from every node to every node share their lines', () => {
  expect(draw('a>x a>y a>z b>x b>y b>z')).toHaveLength(3 + 1 + 3)
})

test.each([20, 40, 79, 120])('no line is wider than the terminal, %i columns', width => {
  for (const graph of [fan(10), fan(40), `${fan(6)} s>join n1>n9 s>n9`])
    for (const line of draw(graph, { width })) expect(line.length).toBeLessThanOrEqual(width)
})

test('nodes that do not fit in their rank share one box, with its edges', () => {
  const drawn = draw(fan(30), { width: 40 })
  expect(drawn.join('\n')).toContain('│ 27 more │')
  expect(drawn.filter(line => line.includes('n0'))).toEqual(['│ n0 │  │ n1 │  │ n2 │  │ 27 more │'].map(expectLine))
  expect(drawn.at(-2)).toContain('join')
})
const expectLine = (line: string) => expect.stringContaining(line.slice(0, 4)) as string

test('a low terminal first drops the second line in each box, then the boxes', () => {
  const twice = { lines: 2 }
  expect(draw('a>b b>c', { ...twice, height: 14 }).join('\n')).toContain('state')
  const low = draw('a>b b>c', { ...twice, height: 12 })
  expect([low.length, low.join('\n').includes('state')]).toEqual([11, false])
  expect(draw('a>b b>c', { ...twice, height: 8 })).toEqual(['┬ a', '├ b', '└ c'])
})

test('a fan that does not fit the height has one line per rank, with the running nodes visible', () => {
  expect(draw(fan(30), { width: 40, height: 5, live: ['n20', 'n21'] })).toEqual([
    '┬ s',
    '├ n20  n21  n0  n1  n2  n3  n4  23 more',
    '└ join',
  ])
})

test.each<[live: number, drawn: string[]]>([
  [0, ['┬ n0', '├ n1', '├ n2', '├ n3', '⋮ 26 more below']],
  [15, ['⋮ 14 more above', '├ n14', '├ n15', '├ n16', '⋮ 13 more below']],
  [29, ['⋮ 26 more above', '├ n26', '├ n27', '├ n28', '└ n29']],
])('in a low terminal a chain of 30 is shown around node %i', (live, drawn) => {
  expect(draw(chain(30), { height: 5, live: [`n${live}`] })).toEqual(drawn)
})

test('a graph with a cycle is a list of its nodes', () => {
  expect(draw('a>b b>a')).toEqual(['┬ a', '└ b'])
})

test('200 nodes and 1,000 edges are drawn within a second', () => {
  const edges = Array.from({ length: 1000 }, (_, at) => {
    const from = (at * 7) % 199
    return `n${from}>n${from + 1 + ((at * 13) % (199 - from))}`
  })
  const begunAt = performance.now()
  const drawn = draw([chain(200), ...edges].join(' '), { width: 120, height: 50 })
  expect(drawn.length).toBeLessThanOrEqual(50)
  expect(performance.now() - begunAt).toBeLessThan(1_000)
})
