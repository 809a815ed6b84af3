import { expect, test } from 'vitest'
import { Failure } from '../../../core/failure.ts'
import { engineEndOf, openSuspects } from '../../../core/jobs/suspects.ts'

const broke = new Failure('worker_error', 'The engine has ended.')
const end = (engineId: string, othersAtEnd: number) => ({ engineId, othersAtEnd, ranMs: 20 })

/** An engine that ended while these requests ran. */
function crashed(ids = ['a', 'b', 'c'], engineId = 'e1') {
  const suspects = openSuspects()
  for (const id of ids) expect(suspects.failed(id, end(engineId, ids.length - 1))).toBe('beside')
  return suspects
}
const alone = (suspects: ReturnType<typeof openSuspects>, ids = ['a', 'b', 'c']) =>
  ids.filter(id => suspects.runsAlone(id))

test.each<[string, Failure, number | undefined, number | undefined]>([
  ['an engine that has ended', broke, 3, 3],
  ['one that has ended without others', broke, 0, 0],
  ['one that made no progress', new Failure('timeout', 'No progress.'), 0, 0],
  ['one that still runs', broke, undefined, undefined],
  ['a reason of its own', new Failure('invalid_value', 'No.'), 3, undefined],
  // Its engine ended before it had got anything of the request.
  ['a request that was not sent', broke.with({ unsent: true }), 0, undefined],
])('the end of an engine: %s', (_, failure, othersAtEnd, expected) => {
  expect(engineEndOf(failure, { engineId: 'e1', othersAtEnd }, 20)?.othersAtEnd).toBe(expected)
})

test('a failure without the end of its engine accuses nobody', () => {
  const suspects = openSuspects()
  expect(suspects.failed('a', undefined)).toBe('none')
  expect(suspects.has('a')).toBe(false)
})

test('who was in flight runs alone until one of them has ended an engine alone', () => {
  const suspects = crashed()
  expect(alone(suspects)).toEqual(['a', 'b', 'c'])
  suspects.ended('a')
  expect(alone(suspects)).toEqual(['b', 'c'])
  expect(suspects.failed('b', end('e2', 0))).toBe('alone')
  expect(alone(suspects)).toEqual(['b'])
  suspects.ended('b')
  suspects.ended('c')
  expect(suspects.has('c')).toBe(false)
})

test('the suspects of another engine stay', () => {
  const suspects = crashed()
  for (const id of ['d', 'e']) suspects.failed(id, end('other', 1))
  suspects.failed('b', end('e2', 0))
  expect(alone(suspects, ['a', 'b', 'c', 'd', 'e'])).toEqual(['b', 'd', 'e'])
})

test('who was beside two crashes runs alone to its end, so that it is retried uncharged twice at most', () => {
  const suspects = crashed()
  suspects.failed('a', end('e2', 0))
  for (const id of ['b', 'c']) expect(suspects.failed(id, end('e3', 1))).toBe('beside')
  expect(suspects.failed('c', end('e4', 0))).toBe('alone')
  expect(alone(suspects)).toEqual(['a', 'b', 'c'])
})

test('a request that ended or froze an engine alone never runs beside others again', () => {
  const suspects = openSuspects()
  expect(suspects.failed('a', end('e1', 0))).toBe('alone')
  expect(suspects.runsAlone('a')).toBe(true)
})

/** Engines of eight slots serve forty requests, of which `crashers` end theirs, in the order of their ids. */
test.each([0, 1, 2, 7, 40])(
  'with %s requests that crash, all others are answered, and no crash is endless',
  crashers => {
    const suspects = openSuspects()
    const requests = Array.from({ length: 40 }, (_, at) => ({
      id: String((at * 7) % 40),
      crashes: (at * 7) % 40 < crashers,
      charged: 0,
      uncharged: 0,
    }))
    const ended: typeof requests = []
    let waiting = [...requests]
    for (let engine = 1; waiting.length > 0; engine++) {
      expect(engine).toBeLessThan(500)
      const first = suspects.runsAlone(waiting[0]!.id)
      const free = waiting.findIndex(({ id }) => suspects.runsAlone(id))
      const batch = waiting.slice(0, first ? 1 : Math.min(8, free < 0 ? 8 : free))
      const crash = batch.some(({ crashes }) => crashes)
      waiting = waiting.slice(batch.length)
      for (const one of batch) {
        const part = crash ? suspects.failed(one.id, end(`e${engine}`, batch.length - 1)) : 'none'
        if (part === 'alone') one.charged++
        if (part === 'beside') one.uncharged++
        if (part === 'none' || one.charged === 3) {
          ended.push(one)
          suspects.ended(one.id)
        } else waiting.push(one)
      }
    }
    expect(ended).toHaveLength(40)
    for (const { crashes, charged, uncharged } of requests) {
      expect(charged).toBe(crashes ? 3 : 0)
      expect(uncharged).toBeLessThanOrEqual(2)
    }
    for (const { id } of requests) expect(suspects.has(id)).toBe(false)
  },
)
