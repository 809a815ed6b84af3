import { describe, expect, test } from 'vitest'
import { openJobDurations, untilBegun, untilDone } from '../../../core/jobs/job-durations.ts'
import { openQueue } from '../../../core/jobs/queue.ts'
import { workOf } from '../../../core/tasks/registry.ts'
import { take, waiting } from './_queue.ts'

describe('the estimated duration of jobs', () => {
  test('is unknown before the first one', () => {
    expect(openJobDurations().expected('m', 1)).toBeNull()
  })

  test('a job twice as large takes twice as long', () => {
    const pace = openJobDurations()
    pace.ran('m', 100, 1_000)
    expect(pace.expected('m', 200)).toBe(2_000)
    expect(pace.expected('m', null)).toBe(1_000)
    expect(pace.expected('other', 200)).toBeNull()
  })

  test('the newest has a weight of a fifth', () => {
    const pace = openJobDurations()
    pace.ran('m', 1, 1_000)
    pace.ran('m', 1, 2_000)
    expect(pace.expected('m', 1)).toBe(1_200)
  })

  test('a job of unknown size only changes the usual time', () => {
    const pace = openJobDurations()
    pace.ran('m', null, 1_000)
    expect(pace.expected('m', 50)).toBe(1_000)
    pace.ran('m', 10, 1_000)
    expect(pace.expected('m', 50)).toBe(5_000)
  })
})

test.each<
  [rule: string, run: { progress: number | null; ranMs: number }, expectedMs: number | null, ms: number | null]
>([
  ['by its progress', { progress: 0.25, ranMs: 1_000 }, 99_000, 3_000],
  ['by what is usual before it tells any', { progress: null, ranMs: 1_000 }, 3_000, 2_000],
  ['its first percent says nothing', { progress: 0.005, ranMs: 1_000 }, 3_000, 2_000],
  ['nothing is promised of one that takes longer than usual', { progress: null, ranMs: 4_000 }, 3_000, null],
  ['nothing is known of the first one', { progress: null, ranMs: 4_000 }, null, null],
  ['all done is no time left', { progress: 1, ranMs: 4_000 }, null, 0],
])('a run ends: %s', (_, run, expectedMs, ms) => {
  expect(untilDone(run, expectedMs)).toBe(ms)
})

test.each<
  [
    rule: string,
    place: { ahead: number; slots: number; freeMs: number | null },
    typicalMs: number | null,
    ms: number | null,
  ]
>([
  ['at once where a slot is free', { ahead: 0, slots: 2, freeMs: 0 }, null, 0],
  ['when those before it have gone', { ahead: 4, slots: 2, freeMs: 500 }, 1_000, 2_500],
  ['after its share of a job where all are busy', { ahead: 0, slots: 4, freeMs: null }, 1_000, 250],
  ['nobody knows before the first one', { ahead: 4, slots: 2, freeMs: null }, null, null],
])('a job begins: %s', (_, place, typicalMs, ms) => {
  expect(untilBegun(place, typicalMs)).toBe(ms)
})

test.each<[rule: string, task: Parameters<typeof workOf>[0], inputs: object | null, work: number | null]>([
  ['text is 1', 'std/chat-completion', { max_tokens: 9 }, 1],
  [
    'a picture is its pixels and steps',
    'slug/text-to-image',
    { width: 64, height: 32, num_images: 2, num_inference_steps: 4 },
    16_384,
  ],
  [
    'a video is its frames too',
    'slug/text-to-video',
    { width: 8, height: 8, num_images: 1, num_frames: 16, num_inference_steps: 2 },
    2_048,
  ],
  ['inputs that are not there say nothing', 'slug/text-to-image', null, null],
  ['and neither do those without sizes', 'slug/text-to-image', { prompt: 'a cat' }, null],
  ['or with wrong ones', 'slug/text-to-image', { width: -1, height: 'x' }, null],
])('the work of a job: %s', (_, task, inputs, work) => {
  expect(workOf(task, JSON.stringify(inputs))).toBe(work)
})

describe('the position', () => {
  /** Takes all entries, and compares the reported positions with the order. */
  function check(weights: Record<string, number>, counts: Record<string, number>, began: string[] = []) {
    const queue = openQueue({ weightOf: id => weights[id] ?? 1 })
    const jobs = Object.entries(counts).flatMap(([organization, count]) =>
      Array.from({ length: count }, (_, i) => waiting(`${organization}${i}`, organization, i)),
    )
    for (const organization of began) {
      queue.offer(waiting(`first-${organization}`, organization, -1))
      queue.ran(take(queue)!, 1_000)
    }
    for (const job of jobs) queue.offer(job)
    const said = new Map(jobs.map(job => [job.id, queue.position(job)]))
    const came = new Map<string, number>()
    for (let turn = take(queue); turn; turn = take(queue)) {
      came.set(turn.job.id, came.size)
      queue.ran(turn, 1_000)
    }
    expect(said).toEqual(came)
  }

  test.each<[name: string, weights: Record<string, number>, counts: Record<string, number>]>([
    ['one organization', {}, { a: 5 }],
    ['two that are equal', {}, { a: 7, b: 3 }],
    ['five of all sizes', {}, { a: 1, b: 2, c: 30, d: 4, e: 5 }],
    ['1 and 4', { b: 4 }, { a: 6, b: 20 }],
    ['1, 2 and 4', { b: 2, c: 4 }, { a: 9, b: 9, c: 9 }],
  ])('is the rank in the order: %s', (_, weights, counts) => {
    check(weights, counts)
  })

  test('beyond the window grows with the rank and stays below the count', () => {
    const queue = openQueue({ weightOf: () => 1, window: 4 })
    const jobs = Array.from({ length: 1_000 }, (_, i) => waiting(`j${i}`, 'a', i))
    for (const job of jobs) queue.offer(job)
    const said = jobs.map(job => queue.position(job)!)
    expect(said[0]).toBe(0)
    expect(said.at(-1)).toBe(999)
    expect(said.every((position, i) => i === 0 || position >= said[i - 1]!)).toBe(true)
    expect(Math.abs(said[500]! - 500)).toBeLessThan(10)
  })

  test('is absent for an entry that does not wait', () => {
    const queue = openQueue({ weightOf: () => 1 })
    queue.offer(waiting('a', 'x', 1))
    expect(queue.position(waiting('b', 'x', 0))).toBeUndefined()
    expect(queue.position(waiting('b', 'y', 0))).toBeUndefined()
    const turn = take(queue)!
    expect(queue.position(turn.job)).toBe(0)
  })
})
