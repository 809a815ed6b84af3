import { expect, test, vi } from 'vitest'
import { Failure } from '../../../core/failure.ts'
import { openRecorder } from '../../../core/jobs/recorder.ts'
import type { FinishedJob, Store } from '../../../core/store/store.ts'
import { finishedCall, keptLog, openTestStore, organizationId } from '../store/_store.ts'

const errors = (lines: string[]) => lines.filter(line => line.includes('"level":"error"'))

/** A store that hears batches, and fails as told. */
function hearing(fail: (calls: FinishedJob[]) => unknown) {
  const batches: FinishedJob[][] = []
  const record = async (calls: FinishedJob[]) => {
    const failure = fail(calls)
    if (failure) throw failure
    batches.push(calls)
  }
  return { store: { jobs: { record } } as unknown as Store, batches }
}

test('records reach the store on their own, in batches, each once', async () => {
  await using opened = await openTestStore()
  const { log, lines } = keptLog()
  const recorder = openRecorder({ store: opened.store, log })
  const calls = Array.from({ length: 2000 }, () => finishedCall())
  for (const call of calls) recorder.record(call)
  await expect.poll(() => recorder.waiting).toBe(0)
  expect(opened.store.stats().ledgerRows).toBe(2000)
  expect(opened.store.stats().commits).toBeLessThan(20)
  recorder.record(finishedCall({ usage: { inputTokens: -1, outputTokens: Number.NaN }, cost: 0.4 }))
  await recorder.close()
  expect(opened.store.stats().ledgerRows).toBe(2001)
  expect((await opened.store.jobs.find(organizationId, calls[0]!.id))?.status).toBe('completed')
  expect(errors(lines)).toEqual([])
})

test('a few do not wait for many', async () => {
  const { store, batches } = hearing(() => undefined)
  const recorder = openRecorder({ store, log: keptLog().log })
  recorder.record(finishedCall())
  recorder.record(finishedCall())
  await expect.poll(() => batches.map(batch => batch.length)).toEqual([2])
  await recorder.close()
})

test('what comes while a batch is written waits for others, however soon that is done', async () => {
  vi.useFakeTimers()
  using _ = { [Symbol.dispose]: () => void vi.useRealTimers() }
  const { store, batches } = hearing(() => {
    if (batches.length === 0) recorder.record(finishedCall())
  })
  const recorder = openRecorder({ store, log: keptLog().log })
  recorder.record(finishedCall())
  await vi.advanceTimersByTimeAsync(60)
  recorder.record(finishedCall())
  await vi.advanceTimersByTimeAsync(60)
  expect(batches.map(batch => batch.length)).toEqual([1, 2])
  await recorder.close()
})

test('a refused batch is sent again, whole and in order', async () => {
  let refusals = 3
  const { store, batches } = hearing(() => refusals-- > 0 && new Failure('disk_full', 'No room.'))
  const { log, lines } = keptLog()
  const recorder = openRecorder({ store, log })
  const calls = Array.from({ length: 700 }, () => finishedCall())
  for (const call of calls) recorder.record(call)
  await recorder.close()
  expect(batches.flat().map(({ id }) => id)).toEqual(calls.map(({ id }) => id))
  expect(lines.filter(line => line.includes('wait for the store'))).toHaveLength(3)
  expect(errors(lines)).toEqual([])
})

test('at its bound it is full, and not any more once the store takes records again', async () => {
  let refusing = true
  const { store } = hearing(() => refusing && new Failure('disk_full', 'No room.'))
  const recorder = openRecorder({ store, log: keptLog().log, most: 10 })
  for (let i = 0; i < 9; i++) recorder.record(finishedCall())
  expect(() => recorder.requireRoom()).not.toThrow()
  recorder.record(finishedCall())
  expect(() => recorder.requireRoom()).toThrow(/cannot write its usage records fast enough/)
  refusing = false
  await expect.poll(() => recorder.waiting, { timeout: 10_000 }).toBeLessThan(10)
  expect(() => recorder.requireRoom()).not.toThrow()
  await recorder.close()
})

test('one that the store cannot hold is reported and does not keep back the others', async () => {
  await using opened = await openTestStore()
  const { log, lines } = keptLog()
  const recorder = openRecorder({ store: opened.store, log })
  const stray = finishedCall({ organizationId: null as never })
  for (const call of [finishedCall(), stray, finishedCall()]) recorder.record(call)
  await recorder.close()
  expect(opened.store.stats().ledgerRows).toBe(2)
  expect(errors(lines)).toEqual([expect.stringContaining(stray.id)])
})

test('what a closed store does not take is reported with its number', async () => {
  const opened = await openTestStore()
  const { log, lines } = keptLog()
  const recorder = openRecorder({ store: opened.store, log, closePatienceMs: 0 })
  await opened.store.close()
  for (let i = 0; i < 3; i++) recorder.record(finishedCall())
  await recorder.close()
  expect(errors(lines)).toEqual([expect.stringMatching(/were not written.*"calls":3/)])
})
