import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { openPacer } from '../../../../server/http/streams/pacer.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

test('a batch continues at once, and each further one after the pause, in the order of arrival', async () => {
  const { wait } = openPacer({ size: 2, everyMs: 10 })
  const gone: number[] = []
  for (let at = 0; at < 5; at++) void wait().then(() => gone.push(at))
  await vi.advanceTimersByTimeAsync(0)
  expect(gone).toEqual([0, 1])
  await vi.advanceTimersByTimeAsync(9)
  expect(gone).toEqual([0, 1])
  await vi.advanceTimersByTimeAsync(1)
  expect(gone).toEqual([0, 1, 2, 3])
  await vi.advanceTimersByTimeAsync(10)
  expect(gone).toEqual([0, 1, 2, 3, 4])
  await vi.advanceTimersByTimeAsync(100)
  void wait().then(() => gone.push(5))
  await vi.advanceTimersByTimeAsync(0)
  expect(gone).toEqual([0, 1, 2, 3, 4, 5])
})

test('callers whose client has disconnected take no turn from others', async () => {
  const { wait } = openPacer({ size: 1, everyMs: 10 })
  const done: number[] = []
  const disconnected = new Set<number>()
  for (let at = 0; at < 1_000; at++) void wait(() => disconnected.has(at)).then(() => done.push(at))
  for (let at = 1; at < 999; at++) disconnected.add(at)
  await vi.advanceTimersByTimeAsync(0)
  expect(done).toEqual([0])
  await vi.advanceTimersByTimeAsync(10)
  expect(done).toHaveLength(1_000)
})
