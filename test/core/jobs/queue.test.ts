import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { openQueue, type Queue, type RunningEntry } from '../../../core/jobs/queue.ts'
import type { WaitingJob } from '../../../core/store/store.ts'
import { type Arrival, entitled, jain, shares, shelf, simulate, take, waiting } from './_queue.ts'

const equal = () => 1
const order = (queue: Queue, ms = 100): string[] => {
  const ids: string[] = []
  for (let turn = take(queue); turn; turn = take(queue)) {
    ids.push(turn.job.id)
    queue.ran(turn, ms)
  }
  return ids
}

describe('the order', () => {
  test.each<
    [
      rule: string,
      weights: Record<string, number>,
      jobs: [id: string, organization: string, rank: number][],
      expected: string,
    ]
  >([
    [
      'of one organization is by rank',
      {},
      [
        ['b', 'x', 2],
        ['a', 'x', 1],
        ['c', 'x', 3],
      ],
      'a b c',
    ],
    [
      'goes from one organization to the next',
      {},
      [
        ['a1', 'a', 1],
        ['a2', 'a', 2],
        ['a3', 'a', 3],
        ['b1', 'b', 4],
        ['b2', 'b', 5],
      ],
      'a1 b1 a2 b2 a3',
    ],
    [
      'gives four turns to one where another has one',
      { b: 4 },
      [
        ['a1', 'a', 1],
        ['a2', 'a', 2],
        ['b1', 'b', 3],
        ['b2', 'b', 4],
        ['b3', 'b', 5],
        ['b4', 'b', 6],
        ['b5', 'b', 7],
      ],
      'a1 b1 b2 b3 b4 a2 b5',
    ],
    [
      'a head start counts in its own organization only',
      {},
      [
        ['a1', 'a', 10],
        ['a2', 'a', -99],
        ['b1', 'b', 11],
      ],
      'a2 b1 a1',
    ],
    [
      'equal ranks are in the order of their ids',
      {},
      [
        ['b', 'x', 1],
        ['a', 'x', 1],
      ],
      'a b',
    ],
  ])('%s', (_, weights, jobs, expected) => {
    const queue = openQueue({ weightOf: id => weights[id] ?? 1 })
    for (const [id, organization, rank] of jobs) queue.offer(waiting(id, organization, rank))
    expect(order(queue)).toEqual(expected.split(' '))
    expect(queue.stats()).toEqual({ waiting: 0, held: 0, lanes: 0 })
  })

  test('a job that is offered twice is taken once', () => {
    const queue = openQueue({ weightOf: equal })
    queue.offer(waiting('a', 'x', 1))
    queue.offer(waiting('a', 'x', 1))
    const turn = take(queue)!
    queue.offer(waiting('a', 'x', 1))
    expect(queue.next('m')).toBeUndefined()
    queue.putBack(turn)
    expect(queue.waiting('m').background).toBe(1)
    expect(order(queue)).toEqual(['a'])
  })

  test('a returned job is the first again, and is not charged', () => {
    const queue = openQueue({ weightOf: equal })
    for (const [id, organization, rank] of [
      ['a1', 'a', 1],
      ['a2', 'a', 2],
      ['b1', 'b', 3],
    ] as const)
      queue.offer(waiting(id, organization, rank))
    queue.putBack(take(queue)!)
    const [first] = order(queue)
    // The other organization was served longer ago, and a's job has kept its position in its own queue.
    expect(first).toBe('b1')
  })

  test('an organization that returns after a pause has no saved credit', () => {
    const queue = openQueue({ weightOf: equal })
    for (let i = 0; i < 20; i++) queue.offer(waiting(`a${i}`, 'a', i))
    queue.offer(waiting('b0', 'b', 100))
    const ids: string[] = []
    for (let i = 0; i < 12; i++) {
      const turn = take(queue)!
      ids.push(turn.job.id)
      queue.ran(turn, 100)
    }
    expect(ids.filter(id => id.startsWith('b'))).toEqual(['b0'])
    for (let i = 1; i < 10; i++) queue.offer(waiting(`b${i}`, 'b', 100 + i))
    const next = order(queue).slice(0, 6)
    expect(next.filter(id => id.startsWith('b'))).toHaveLength(3)
  })

  test('models do not wait for each other', () => {
    const queue = openQueue({ weightOf: equal })
    queue.offer(waiting('a', 'x', 1, 'one'))
    queue.offer(waiting('b', 'x', 2, 'two'))
    expect(queue.next('two')).toMatchObject({ job: { id: 'b' } })
    expect(queue.waiting('one').background).toBe(1)
  })
})

describe('T-FAIR-1: organizations share the GPU time', () => {
  const many = (organization: string, count: number, ms: number | (() => number), at = 0): Arrival[] =>
    Array.from({ length: count }, () => ({ organization, at, ms: typeof ms === 'number' ? ms : ms() }))
  const trickle = (organization: string, everyMs: number, ms: number, until: number): Arrival[] =>
    Array.from({ length: Math.floor(until / everyMs) }, (_, i) => ({ organization, at: i * everyMs + 37, ms }))
  let seed = 7
  const random = () => (seed = (seed * 16_807) % 2_147_483_647) / 2_147_483_647
  const uneven = () => 20 + Math.round(180 * random())

  test.each<
    [
      name: string,
      slots: number,
      weights: Record<string, number>,
      few: number | (() => number),
      lots: number | (() => number),
    ]
  >([
    ['equal jobs, one slot', 1, {}, 100, 100],
    ['equal jobs, four slots', 4, {}, 100, 100],
    ['jobs of all lengths', 1, {}, uneven, uneven],
    ['long jobs against short ones', 1, {}, 40, 400],
    ['short jobs against long ones, four slots', 4, {}, 400, 40],
    ['weights of 1 and 4', 1, { lots: 1, few: 4, trickle: 1 }, 100, 100],
    ['weights of 4 and 1', 1, { lots: 4, few: 1, trickle: 1 }, 100, 100],
    ['weights of 1 and 4, jobs of all lengths, four slots', 4, { lots: 1, few: 4, trickle: 4 }, uneven, uneven],
  ])('%s', (_, slots, weights, few, lots) => {
    const queue = openQueue({ weightOf: id => weights[id] ?? 1, window: 2_000 })
    const arrivals = [...many('lots', 1_000, lots), ...many('few', 40, few), ...trickle('trickle', 1_000, 100, 60_000)]
    const ended = simulate(queue, arrivals, slots)
    expect(ended).toHaveLength(arrivals.length)
    // While the short backlogs last, all three have waiting jobs: the shares have to be fair then.
    const to = Math.max(...ended.filter(one => one.organization === 'few').map(one => one.ended))
    const demand: Record<string, number> = {}
    for (const one of arrivals) if (one.at < to) demand[one.organization] = (demand[one.organization] ?? 0) + one.ms
    const fair = entitled(demand, weights, to * slots)
    const got = shares(ended, 0, to)
    expect(jain(Object.keys(fair).map(name => got[name]! / fair[name]!))).toBeGreaterThanOrEqual(0.95)
  })

  test.each([1, 4])(
    'an organization with occasional requests waits at most twice as long as alone, %i slots',
    slots => {
      const victim = trickle('victim', 1_000, 100, 50_000)
      const mean = (arrivals: Arrival[]) => {
        const ended = simulate(openQueue({ weightOf: equal, window: 2_000 }), arrivals, slots)
        const own = ended.filter(one => one.organization === 'victim')
        return own.reduce((sum, one) => sum + one.ended - one.at, 0) / own.length
      }
      const alone = mean(victim)
      const beside = mean([...victim, ...many('lots', 1_000, 100), ...many('few', 10, 100)])
      expect(beside / alone).toBeLessThanOrEqual(2)
    },
  )

  test('an organization with one long job at a time is charged for it', () => {
    // Each of its jobs arrives when the one before has ended: it never has a backlog.
    const queue = openQueue({ weightOf: equal, window: 2_000 })
    for (let i = 0; i < 1_000; i++) queue.offer(waiting(`s${i}`, 'short', i))
    let [now, long, own] = [0, 0, 0]
    queue.offer(waiting('l0', 'long', 0))
    while (now < 50_000) {
      const turn = take(queue)!
      const isLong = turn.job.organizationId === 'long'
      const ms = isLong ? 1_000 : 50
      now += ms
      queue.ran(turn, ms)
      if (isLong) long += ms
      if (isLong) queue.offer(waiting(`l${++own}`, 'long', own))
    }
    expect(long / now).toBeGreaterThan(0.45)
    expect(long / now).toBeLessThan(0.55)
  })
})

describe('the window', () => {
  test('a hundred thousand jobs are counted and a few of them held', () => {
    const store = shelf()
    const queue = openQueue({ weightOf: equal })
    queue.begin([{ modelId: 'm', class: 'async', organizationId: 'x', jobs: 100_000 }])
    expect(queue.waiting('m').background).toBe(100_000)
    expect(queue.stats().held).toBe(0)
    for (let i = 0; i < 1_000; i++) store.jobs.set(`j${i}`, waiting(`j${i}`, 'x', i))
    expect(store.next(queue)?.job.id).toBe('j0')
    expect(queue.stats().held).toBeLessThanOrEqual(512)
    expect(queue.waiting('m').background).toBe(99_999)
  })

  test('of ten thousand organizations fewer jobs are held for each', () => {
    const queue = openQueue({ weightOf: equal, most: 20_000 })
    for (let i = 0; i < 100_000; i++) queue.offer(waiting(`j${i}`, `o${i % 5_000}`, i))
    expect(queue.stats().waiting).toBe(100_000)
    expect(queue.stats().held).toBeLessThanOrEqual(5_000 * 17)
  })

  type Op =
    | { do: 'submit'; organization: number; rank: number }
    | { do: 'turn' }
    | { do: 'end'; which: number; ms: number; again: boolean }
    | { do: 'cancel'; which: number }
    | { do: 'read' }
    | { do: 'answer' }
  const op = fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({ do: fc.constant('submit' as const), organization: fc.nat(2), rank: fc.nat(30) }),
    },
    { weight: 4, arbitrary: fc.constant({ do: 'turn' as const }) },
    {
      weight: 2,
      arbitrary: fc.record({ do: fc.constant('end' as const), which: fc.nat(9), ms: fc.nat(500), again: fc.boolean() }),
    },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('cancel' as const), which: fc.nat(30) }) },
    { weight: 2, arbitrary: fc.constant({ do: 'read' as const }) },
    { weight: 2, arbitrary: fc.constant({ do: 'answer' as const }) },
  ) satisfies fc.Arbitrary<Op>

  /**
   * Applies the operations to one queue and its store. The reads resolve late where `slow`; otherwise the queue learns at
   * once that nothing is left, as it does by its reads ahead of need.
   */
  function play(ops: readonly Op[], window: number, slow: boolean): { turns: string[]; left: number } {
    const store = shelf()
    let now = 0
    const queue = openQueue({ weightOf: equal, window, most: window * 3, now: () => (now += 1e-6) })
    queue.begin([])
    const all: WaitingJob[] = []
    const running: RunningEntry[] = []
    const turns: string[] = []
    const answers: (() => void)[] = []
    const read = (want: NonNullable<ReturnType<Queue['nextRead']>>) => {
      const found = store.find(want)
      answers.push(() => queue.readDone(want, found))
      if (!slow) answers.shift()!()
    }
    const takeNext = (): boolean => {
      const next = queue.next('m')
      if (!next) return false
      if ('job' in next) {
        const turn = queue.take(next)
        // A job that was cancelled in the store cannot be claimed.
        if (store.jobs.delete(turn.job.id)) {
          turns.push(turn.job.id)
          running.push(turn)
        } else queue.skip(turn)
      } else {
        if ('read' in next) read(next.read)
        else answers.shift()!()
        return slow || takeNext()
      }
      return true
    }
    for (const one of ops) {
      if (one.do === 'submit') {
        const job = waiting(`j${all.length}`, `o${one.organization}`, one.rank * 1_000 + all.length)
        all.push(job)
        store.jobs.set(job.id, job)
        queue.offer(job)
      } else if (one.do === 'turn') takeNext()
      else if (one.do === 'end' && running.length > 0) {
        const [turn] = running.splice(one.which % running.length, 1) as [RunningEntry]
        if (one.again) {
          store.jobs.set(turn.job.id, turn.job)
          turns.splice(turns.lastIndexOf(turn.job.id), 1)
          queue.putBack(turn)
        } else queue.ran(turn, one.ms)
      } else if (one.do === 'cancel' && all.length > 0) {
        const job = all[one.which % all.length]!
        if (store.jobs.delete(job.id)) queue.remove(job)
      } else if (one.do === 'read') {
        const want = queue.nextRead()
        if (want) read(want)
      } else answers.shift()?.()
      // Nothing waits or runs, so the accounts are reset: with all jobs in memory that needs no read.
      if (slow || store.jobs.size + running.length > 0) continue
      for (let want = queue.nextRead(); want; want = queue.nextRead()) read(want)
    }
    for (const turn of running.splice(0)) queue.ran(turn, 10)
    for (const answer of answers.splice(0)) answer()
    for (;;) {
      while (takeNext()) for (const turn of running.splice(0)) queue.ran(turn, 10)
      const want = queue.nextRead()
      if (!want) break
      read(want)
      for (const answer of answers.splice(0)) answer()
    }
    const { waiting: counted, held, lanes } = queue.stats()
    return { turns, left: store.jobs.size + counted + held + lanes }
  }

  test('loses no job and takes none twice, whatever happens during a read', () => {
    fc.assert(
      fc.property(fc.array(op, { size: 'max', maxLength: 120 }), fc.integer({ min: 1, max: 12 }), (ops, window) => {
        const { turns, left } = play(ops, window, true)
        expect(new Set(turns).size).toBe(turns.length)
        expect(left).toBe(0)
      }),
      { numRuns: 1_000 },
    )
  })

  /** Three jobs of one organization, of which the second is cancelled, end before two others come. */
  const lastOfWindowEnds: Op[] = [
    ...[0, 0, 0].map(organization => ({ do: 'submit' as const, organization, rank: 0 })),
    { do: 'turn' },
    { do: 'cancel', which: 1 },
    { do: 'end', which: 0, ms: 0, again: false },
    { do: 'turn' },
    { do: 'end', which: 0, ms: 0, again: false },
    ...[0, 1].map(organization => ({ do: 'submit' as const, organization, rank: 0 })),
  ]

  /** All jobs of an organization are cancelled, and it submits another one. */
  const allOfOneCancelled: Op[] = [
    ...[2, 2, 1, 1, 0, 1].map(organization => ({ do: 'submit' as const, organization, rank: 0 })),
    ...[3, 5, 2].map(which => ({ do: 'cancel' as const, which })),
    { do: 'submit', organization: 1, rank: 0 },
  ]

  test('does not change the order', () => {
    fc.assert(
      fc.property(fc.array(op, { size: 'max', maxLength: 120 }), fc.integer({ min: 1, max: 12 }), (ops, window) => {
        expect(play(ops, window, false).turns).toEqual(play(ops, 1_000, false).turns)
      }),
      {
        numRuns: 300,
        examples: [
          [lastOfWindowEnds, 1],
          [allOfOneCancelled, 1],
        ],
      },
    )
  })
})
