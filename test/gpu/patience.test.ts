import { expect, test } from 'vitest'
import { Failure } from '../../core/failure.ts'
import { patiently } from '../../gpu/patience.ts'

/** A clock whose only timer goes off by hand. */
function byHand() {
  let run: (() => void) | undefined
  return {
    clock: { now: () => 0, after: (_ms: number, what: () => void) => ((run = what), () => (run = undefined)) },
    ring: () => run?.(),
    armed: () => run !== undefined,
  }
}
const late = () => new Failure('model_warming_up', 'Not yet.')

test('what comes in time is what is waited for, and nothing is left behind', async () => {
  const { clock, armed } = byHand()
  const { signal } = new AbortController()
  expect(await patiently(Promise.resolve(7), { ms: 10, signal, clock, late })).toBe(7)
  await expect(patiently(Promise.reject(new Error('no')), { ms: 10, clock, late })).rejects.toThrow('no')
  expect(armed()).toBe(false)
})

test('who has waited long enough is told so, and the work goes on', async () => {
  const { clock, ring, armed } = byHand()
  const work = Promise.withResolvers<number>()
  const waiting = patiently(work.promise, { ms: 10, clock, late })
  ring()
  await expect(waiting).rejects.toMatchObject({ code: 'model_warming_up' })
  expect(armed()).toBe(false)
  work.resolve(7)
  expect(await work.promise).toBe(7)
})

test('who leaves is told why, before and while he waits', async () => {
  const { clock, armed } = byHand()
  const leaving = new AbortController()
  const never = new Promise<number>(() => {})
  const waiting = patiently(never, { ms: 10, signal: leaving.signal, clock, late })
  leaving.abort(new Failure('cancelled', 'Gone.'))
  await expect(waiting).rejects.toMatchObject({ code: 'cancelled' })
  await expect(patiently(never, { ms: 10, signal: leaving.signal, clock, late })).rejects.toMatchObject({
    code: 'cancelled',
  })
  expect(armed()).toBe(false)
})
