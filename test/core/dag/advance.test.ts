import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { advance, begin, isOver, type Plan, type Standing } from '../../../core/dag/advance.ts'

/** `a>b c>d`, with a question mark behind nodes whose failure is borne: `a?>b`. */
function planOf(text: string, onFailure: Plan['onFailure'] = 'fail_fast') {
  const pairs = text.split(' ').map(part => part.split('>'))
  const names = [...new Set(pairs.flat())]
  const at = (name: string) => names.indexOf(name)
  const edges = pairs.flatMap(([from, to]) => (to ? [[at(from!), at(to)] as const] : []))
  const plan: Plan = {
    onFailure,
    nodes: names.map((name, node) => ({
      successors: edges.filter(([from]) => from === node).map(([, to]) => to),
      predecessors: edges.filter(([, to]) => to === node).length,
      onError: name.endsWith('?') ? 'continue' : 'fail',
    })),
  }
  return { plan, names }
}

/** Plays `a! b x c`: a node that ends well, with an exclamation mark one that fails; tells what followed, step by step. */
function play(graph: string, ends: string, onFailure?: Plan['onFailure']) {
  const { plan, names } = planOf(graph, onFailure)
  const { release, skip, ended, ...standing } = begin(plan)
  const told = [{ release, skip, ended }]
  for (const end of ends.split(' ').filter(Boolean)) {
    const node = names.indexOf(end.replace(/!$/, ''))
    expect(standing.status[node]).not.toBe('pending')
    told.push(advance(plan, standing, node, end.endsWith('!') ? 'failed' : 'completed'))
  }
  return told
    .map(step => {
      const list = (mark: string, nodes: number[]) => nodes.map(node => mark + names[node]!.replace('?', ''))
      return [...list('+', step.release), ...list('-', step.skip), ...(step.ended ? [step.ended] : [])].join(' ')
    })
    .join(', ')
}

test.for([
  ['one', 'a', 'a', '+a, completed'],
  ['a chain', 'a>b b>c', 'a b c', '+a, +b, +c, completed'],
  ['side by side', 'a b', 'b a', '+a +b, , completed'],
  ['a fan and its end', 'a>b a>c b>d c>d', 'a c b d', '+a, +b +c, , +d, completed'],
  ['a failure ends what has not begun', 'a>b c>d', 'a!', '+a +c, -b -c -d failed'],
  ['what comes after a failure is skipped, the rest runs', 'a>b c>d', 'a! c d', '+a +c, -b, +d, failed', 'continue'],
  ['what comes after several failures is skipped once', 'a>c b>c', 'a! b!', '+a +b, -c, failed', 'continue'],
  ['a failure that is borne is an end like any other', 'a?>b', 'a?! b', '+a, +b, completed'],
  ['one that nobody comes after too', 'a? b', 'a?! b', '+a +b, , completed'],
  ['a borne failure does not heal another', 'a?>c b>c', 'a?! b!', '+a +b, , -c failed'],
] as const)('%s', ([, graph, ends, told, onFailure]) => {
  expect(play(graph, ends, onFailure)).toBe(told)
})

test('those that run when another fails go on, and what comes after them does not', () => {
  const { plan } = planOf('a>b c>d')
  const { release: _, skip: __, ended: ___, ...standing } = begin(plan)
  standing.status[2] = 'running'
  expect(advance(plan, standing, 0, 'failed')).toEqual({ release: [], skip: [1, 3], ended: null })
  expect(advance(plan, standing, 2, 'completed')).toEqual({ release: [], skip: [], ended: 'failed' })
})

test('an end that is told twice changes nothing', () => {
  const { plan } = planOf('a>b')
  const { release: _, skip: __, ended: ___, ...standing } = begin(plan)
  advance(plan, standing, 0, 'completed')
  const before = structuredClone(standing)
  expect(advance(plan, standing, 0, 'failed')).toEqual({ release: [], skip: [], ended: null })
  expect(standing).toEqual(before)
})

test('what another execution has done already is not run again', () => {
  const { plan } = planOf('a>b b>c d')
  const { release, status, open, ended } = begin(plan, new Set([0, 3]))
  expect({ release, status, open, ended }).toEqual({
    release: [1],
    status: ['completed', 'ready', 'pending', 'completed'],
    open: 2,
    ended: null,
  })
  expect(begin(plan, new Set([0, 1, 2, 3])).ended).toBe('completed')
})

describe('of any graph, in any order of ends', () => {
  const graphs = fc
    .record({
      size: fc.integer({ min: 1, max: 12 }),
      edges: fc.array(fc.tuple(fc.nat(11), fc.nat(11)), { maxLength: 30, size: 'max' }),
      borne: fc.array(fc.boolean(), { minLength: 12, maxLength: 12 }),
      onFailure: fc.constantFrom('fail_fast' as const, 'continue' as const),
    })
    .map(({ size, edges, borne, onFailure }): Plan => {
      const own = [...new Set(edges.filter(([a, b]) => a < b && b < size).map(pair => pair.join('>')))].map(text =>
        text.split('>').map(Number),
      )
      return {
        onFailure,
        nodes: Array.from({ length: size }, (_, node) => ({
          successors: own.filter(([from]) => from === node).map(([, to]) => to!),
          predecessors: own.filter(([, to]) => to === node).length,
          onError: borne[node] ? 'continue' : 'fail',
        })),
      }
    })

  test('nothing runs before what it needs, everything ends once, and the end is told once', () => {
    fc.assert(
      fc.property(graphs, fc.infiniteStream(fc.nat()), fc.infiniteStream(fc.boolean()), (plan, picks, fates) => {
        const first = begin(plan)
        const standing: Standing = { status: first.status, missing: first.missing, open: first.open }
        const released = new Set<number>()
        const ends: string[] = []
        const heed = (from: Pick<typeof first, 'release' | 'skip' | 'ended'>) => {
          for (const node of from.release) {
            expect(released.has(node)).toBe(false)
            released.add(node)
            for (const [before, { successors, onError }] of plan.nodes.entries())
              if (successors.includes(node))
                expect(
                  standing.status[before] === 'completed' ||
                    (standing.status[before] === 'failed' && onError === 'continue'),
                ).toBe(true)
          }
          if (from.ended) ends.push(from.ended)
        }
        heed(first)
        for (;;) {
          const ready = [...standing.status.keys()].filter(
            node => standing.status[node] === 'ready' || standing.status[node] === 'running',
          )
          if (ready.length === 0) break
          const node = ready[picks.next().value! % ready.length]!
          // Some begin and end later, others end at once.
          if (standing.status[node] === 'ready' && fates.next().value) standing.status[node] = 'running'
          else heed(advance(plan, standing, node, fates.next().value ? 'completed' : 'failed'))
        }
        expect(standing.status.every(isOver)).toBe(true)
        expect(standing.open).toBe(0)
        expect(ends).toHaveLength(1)
        const bad = standing.status.some((status, node) => status === 'failed' && plan.nodes[node]!.onError === 'fail')
        expect(ends[0]).toBe(bad ? 'failed' : 'completed')
        if (!bad) expect(standing.status.includes('skipped')).toBe(false)
      }),
      { numRuns: 500 },
    )
  })
})
