import { expect, test, vi } from 'vitest'
import { Failure } from '../../../core/failure.ts'
import { openRecorder } from '../../../core/jobs/recorder.ts'
import { callRows, callsIn, isText } from '../../../core/store/ledger-rows.ts'
import type { FinishedJob, Store } from '../../../core/store/store.ts'
import { meteredUsage } from '../../../core/usage.ts'
import { finishedCall, keptLog, openTestStore, organizationId } from '../store/_store.ts'

const errors = (lines: string[]) => lines.filter(line => line.includes('"level":"error"'))

/** A store that receives batches, and fails as configured. */
function hearing(fail: (calls: FinishedJob[]) => unknown) {
  const batches: FinishedJob[][] = []
  const record = async (entries: Parameters<Store['jobs']['record']>[0]) => {
    const calls = entries.flatMap(one => (isText(one) ? [] : [one]))
    const failure = fail(calls)
    if (failure) throw failure
    batches.push(calls)
  }
  return { store: { jobs: { record } } as unknown as Store, batches }
}

test('records reach the store automatically, in batches, each once', async () => {
  await using opened = await openTestStore()
  const { log, lines } = keptLog()
  const recorder = openRecorder({ store: opened.store, log })
  const calls = Array.from({ length: 2000 }, () => finishedCall())
  for (const call of calls) recorder.record(call)
  await expect.poll(() => recorder.waiting).toBe(0)
  expect(opened.store.stats().ledgerRows).toBe(2000)
  expect(opened.store.stats().commits).toBeLessThan(20)
  recorder.record(finishedCall())
  await recorder.close()
  expect(opened.store.stats().ledgerRows).toBe(2001)
  expect((await opened.store.jobs.find(organizationId, calls[0]!.id))?.status).toBe('completed')
  expect(errors(lines)).toEqual([])
})

test('a few are written without waiting for more', async () => {
  const { store, batches } = hearing(() => undefined)
  const recorder = openRecorder({ store, log: keptLog().log })
  recorder.record(finishedCall())
  recorder.record(finishedCall())
  await expect.poll(() => batches.map(batch => batch.length)).toEqual([2])
  await recorder.close()
})

test('writes are 100 ms apart while records come, however short they are, and a record alone waits half as long', async () => {
  vi.useFakeTimers()
  using _ = { [Symbol.dispose]: () => void vi.useRealTimers() }
  const { store, batches } = hearing(() => {
    if (batches.length === 0) recorder.record(finishedCall())
  })
  const sizes = () => batches.map(batch => batch.length)
  const recorder = openRecorder({ store, log: keptLog().log })
  recorder.record(finishedCall())
  await vi.advanceTimersByTimeAsync(51)
  expect(sizes()).toEqual([1])
  recorder.record(finishedCall())
  await vi.advanceTimersByTimeAsync(90)
  expect(sizes()).toEqual([1])
  await vi.advanceTimersByTimeAsync(10)
  expect(sizes()).toEqual([1, 2])
  await vi.advanceTimersByTimeAsync(500)
  recorder.record(finishedCall())
  await vi.advanceTimersByTimeAsync(51)
  expect(sizes()).toEqual([1, 2, 1])
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

test('at its limit it is full, and it has room again once the store accepts records', async () => {
  let refusing = true
  const { store } = hearing(() => refusing && new Failure('disk_full', 'No room.'))
  const recorder = openRecorder({ store, log: keptLog().log, most: 10 })
  for (let i = 0; i < 9; i++) recorder.record(finishedCall())
  expect(() => recorder.requireRoom()).not.toThrow()
  recorder.record(finishedCall())
  expect(() => recorder.requireRoom()).toThrow(/cannot write its usage records fast enough/)
  refusing = false
  await expect.poll(() => recorder.waiting).toBeLessThan(10)
  expect(() => recorder.requireRoom()).not.toThrow()
  await recorder.close()
})

test('a record that the store cannot hold is reported and does not block the others', async () => {
  await using opened = await openTestStore()
  const { log, lines } = keptLog()
  const recorder = openRecorder({ store: opened.store, log })
  const stray = finishedCall({ organizationId: null as never })
  for (const call of [finishedCall(), stray, finishedCall()]) recorder.record(call)
  await recorder.close()
  expect(opened.store.stats().ledgerRows).toBe(2)
  expect(errors(lines)).toEqual([expect.stringContaining(stray.id)])
})

test('records that a closed store refuses are reported with their number', async () => {
  const opened = await openTestStore()
  const { log, lines } = keptLog()
  const recorder = openRecorder({ store: opened.store, log, closePatienceMs: 0 })
  await opened.store.close()
  for (let i = 0; i < 3; i++) recorder.record(finishedCall())
  await recorder.close()
  expect(errors(lines)).toEqual([expect.stringMatching(/were not written.*"calls":3/)])
})

test('while records are kept, only those from before are written', async () => {
  const { store, batches } = hearing(() => undefined)
  const recorder = openRecorder({ store, log: keptLog().log })
  const [before, kept] = [finishedCall(), Array.from({ length: 600 }, () => finishedCall())]
  recorder.record(before)
  const held = recorder.hold()
  for (const call of kept) recorder.record(call)
  await held
  expect(batches).toEqual([[before]])
  recorder.resume()
  await expect.poll(() => recorder.waiting).toBe(0)
  expect(batches.flat()).toEqual([before, ...kept])
  await recorder.hold()
  recorder.record(finishedCall())
  await recorder.close()
  expect(batches.flat()).toHaveLength(602)
})

const textOf = (calls: FinishedJob[]) => ({ text: JSON.stringify(callRows(calls)), calls: calls.length })

test('the text of calls has all of them', () => {
  const usage = meteredUsage({ inputTokens: 3, outputTokens: 4, cachedTokens: 1, gpuMs: 7, energyMj: 9 })
  const error = { code: 'worker_error', message: 'No "such" thing.' } as FinishedJob['error']
  const calls = [
    finishedCall({
      usage,
      error,
      status: 'failed',
      requestedModel: 'alias',
      fallbackReason: 'failed',
      timeToFirstTokenMs: 7,
    }),
    finishedCall({
      usage,
      requestedModel: null,
      fallbackReason: null,
      timeToFirstTokenMs: null,
      startedAt: null,
      engineId: null,
    }),
  ]
  expect(callsIn(textOf(calls).text)).toEqual(calls)
})

test('texts of another process are found while they wait, and written with the others', async () => {
  await using opened = await openTestStore()
  const { log, lines } = keptLog()
  const recorder = openRecorder({ store: opened.store, log })
  const calls = Array.from({ length: 700 }, () => finishedCall())
  recorder.recordText(textOf(calls.slice(0, 300)))
  recorder.record(finishedCall())
  recorder.recordText(textOf(calls.slice(300)))
  expect(recorder.waiting).toBe(701)
  expect(recorder.find(organizationId, calls[400]!.id)).toMatchObject({ id: calls[400]!.id, status: 'completed' })
  expect(recorder.find('org_other', calls[400]!.id)).toBeUndefined()
  const written = Promise.withResolvers<void>()
  recorder.whenWritten(written.resolve)
  await written.promise
  expect(opened.store.stats().ledgerRows).toBe(701)
  expect((await opened.store.jobs.find(organizationId, calls[600]!.id))?.status).toBe('completed')
  await recorder.close()
  expect(errors(lines)).toEqual([])
})

test('a call in a text that the store cannot hold does not block the others', async () => {
  await using opened = await openTestStore()
  const { log, lines } = keptLog()
  const recorder = openRecorder({ store: opened.store, log })
  const stray = finishedCall({ organizationId: null as never })
  recorder.recordText(textOf([finishedCall(), stray, finishedCall()]))
  await recorder.close()
  expect(opened.store.stats().ledgerRows).toBe(2)
  expect(errors(lines)).toEqual([expect.stringContaining(stray.id)])
})
