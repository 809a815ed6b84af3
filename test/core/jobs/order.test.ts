import { expect, test } from 'vitest'
import { openQueue, type Queue } from '../../../core/jobs/queue.ts'
import type { JobClass } from '../../../core/store/store.ts'
import { take, waiting } from './_queue.ts'

/** Entries as `organization:class`, numbered in the order of arrival. */
function filled(entries: readonly string[], weights: Record<string, number> = {}, now = () => 0): Queue {
  const queue = openQueue({ weightOf: id => weights[id] ?? 1, now, ageingMs: 30_000 })
  entries.forEach((entry, rank) => {
    const [organization, jobClass] = entry.split(':') as [string, JobClass]
    queue.offer(waiting(`${organization}${rank}`, organization, rank, 'm', jobClass))
  })
  return queue
}

function order(queue: Queue, ms = 100): string {
  const ids: string[] = []
  for (let turn = take(queue); turn; turn = take(queue)) {
    ids.push(turn.job.id)
    queue.ran(turn, ms)
  }
  return ids.join(' ')
}

const times = (count: number, entry: string): string[] => Array.from({ length: count }, () => entry)

test.each<[rule: string, entries: string[], expected: string]>([
  [
    'in one organization the classes come one after the other, whatever came first',
    ['a:batch', 'a:batch', 'a:async', 'a:async', 'a:workflow', 'a:workflow', 'a:interactive', 'a:interactive'],
    'a6 a7 a4 a5 a2 a3 a0 a1',
  ],
  [
    'calls of several organizations take turns',
    ['a:interactive', 'a:interactive', 'a:interactive', 'b:interactive', 'b:interactive'],
    'a0 b3 a1 b4 a2',
  ],
  [
    "one job is not held up by another organization's backlog of calls",
    [...times(5, 'a:interactive'), 'b:async'],
    'a0 b5 a1 a2 a3 a4',
  ],
  [
    'a backlog of jobs has one turn among calls and waits then',
    [...times(3, 'b:async'), ...times(4, 'a:interactive')],
    'a3 b0 a4 a5 a6 b1 b2',
  ],
  ['a call goes before a backlog of jobs', [...times(3, 'b:async'), 'c:interactive'], 'c3 b0 b1 b2'],
  [
    'nodes of workflows go before jobs, and those before batches',
    ['a:batch', 'a:batch', 'b:async', 'b:async', 'c:workflow', 'c:workflow'],
    'c4 b2 a0 c5 b3 a1',
  ],
])('%s', (_, entries, expected) => {
  expect(order(filled(entries))).toBe(expected)
})

test('an organization that sends one job at a time gets its fair share beside a backlog of calls, and no more', () => {
  const queue = filled(times(200, 'a:interactive'))
  let next = 1_000
  let [own, all] = [0, 0]
  queue.offer(waiting('b', 'b', next, 'm', 'async'))
  for (let turn = take(queue); turn && all < 100; turn = take(queue)) {
    all++
    queue.ran(turn, 100)
    if (turn.job.organizationId !== 'b') continue
    own++
    queue.offer(waiting(`b${++next}`, 'b', next, 'm', 'async'))
  }
  expect(own / all).toBeGreaterThan(0.4)
  expect(own / all).toBeLessThanOrEqual(0.52)
})

test('weights apply among calls', () => {
  const queue = filled([...times(100, 'a:interactive'), ...times(100, 'b:interactive')], { a: 1, b: 4 })
  const first = order(queue).split(' ').slice(0, 50)
  expect(first.filter(id => id.startsWith('b'))).toHaveLength(40)
})

test('a lane that has waited too long is served in one of four turns, however many calls arrive', () => {
  let now = 0
  const queue = filled(times(1_000, 'a:interactive'), {}, () => now)
  for (let rank = 0; rank < 3; rank++) queue.offer(waiting(`b${rank}`, 'a', rank, 'm', 'batch'))
  const served: { id: string; at: number }[] = []
  while (now < 100_000) {
    const turn = take(queue)!
    served.push({ id: turn.job.id, at: now })
    now += 100
    queue.ran(turn, 100)
  }
  const jobs = served.filter(({ id }) => id.startsWith('b'))
  expect(jobs.map(({ id }) => id)).toEqual(['b0', 'b1', 'b2'])
  // Each after half a minute without a turn of its lane.
  expect(jobs.map(({ at }) => Math.round(at / 1_000))).toEqual([30, 60, 90])
})

test('an organization with one batch job at a time gets no more than a fair share beside a workflow', () => {
  const queue = filled(times(700, 'z:workflow'))
  const counts: Record<string, number> = {}
  let next = 1_000
  for (const organization of ['a', 'b', 'c'])
    queue.offer(waiting(`${organization}${++next}`, organization, next, 'm', 'batch'))
  for (let turns = 0; turns < 600; turns++) {
    const turn = take(queue)!
    const { organizationId } = turn.job
    counts[organizationId] = (counts[organizationId] ?? 0) + 1
    queue.ran(turn, 100)
    if (organizationId !== 'z') queue.offer(waiting(`${organizationId}${++next}`, organizationId, next, 'm', 'batch'))
  }
  expect(counts.z).toBeGreaterThanOrEqual(149)
})

test('a turn for an aged lane does not change where other organizations begin', () => {
  let now = 0
  const queue = filled(['a:interactive'], {}, () => now)
  const run = (ms: number): string => {
    const turn = take(queue)!
    now += ms
    queue.ran(turn, ms)
    return turn.job.organizationId
  }
  let next = 10
  const offer = (organization: string) =>
    queue.offer(waiting(`${organization}${++next}`, organization, next, 'm', 'interactive'))
  for (let i = 0; i < 400; i++) offer('b')
  // One long call, then another one that is served because it has waited long.
  expect(run(600_000)).toBe('a')
  offer('a')
  while (run(1_000) !== 'a');
  const served: string[] = []
  for (let i = 0; i < 100; i++) {
    offer('c')
    served.push(run(1_000))
  }
  expect(served.slice(0, 3)).toContain('c')
  expect(served.filter(one => one === 'c').length).toBeGreaterThan(40)
})

test('state of inactive organizations does not grow with their number', () => {
  const queue = filled(times(1_100, 'z:batch'))
  for (let i = 0; i < 1_000; i++) {
    queue.offer(waiting(`o${i}`, `o${i}`, i, 'm', 'interactive'))
    queue.ran(take(queue)!, 10)
  }
  expect(queue.stats().lanes).toBeLessThan(10)
})

test('where only calls may be served, jobs are skipped', () => {
  const queue = filled(['b:async'])
  expect(queue.next('m', { jobs: false })).toBeUndefined()
  expect(queue.next('m', { jobs: true })).toMatchObject({ job: { id: 'b0' } })
})

test('positions count the classes before', () => {
  const queue = filled([...times(3, 'a:interactive'), ...times(2, 'b:async'), ...times(2, 'b:batch')])
  const position = (id: string, rank: number, organization: string, jobClass: JobClass) =>
    queue.position(waiting(id, organization, rank, 'm', jobClass))
  expect(position('a2', 2, 'a', 'interactive')).toBe(4)
  expect(position('b4', 4, 'b', 'async')).toBe(5)
  expect(position('b6', 6, 'b', 'batch')).toBe(6)
})

test('demand: the wait of the first entry, and the work of all', () => {
  let now = 1_000
  const queue = filled(times(3, 'a:interactive'), {}, () => now)
  expect(queue.load('m')).toMatchObject({ oldestWaitMs: 0, workMs: null })
  queue.ran(take(queue)!, 200)
  now = 1_500
  expect(queue.load('m')).toMatchObject({ oldestWaitMs: 500, workMs: 400 })
  queue.offer(waiting('j', 'b', 1, 'm', 'async'))
  expect(queue.load('m').workMs).toBe(600)
  expect(queue.load('m', { jobs: false }).workMs).toBe(400)
  expect(queue.load('unknown')).toEqual({ oldestWaitMs: 0, workMs: 0, referenceStart: null })
})
