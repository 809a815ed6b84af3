import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { Failure } from '../../core/failure.ts'
import { openLog } from '../../core/log.ts'
import { openSweep } from '../../core/sweep.ts'

/** A sweep whose batches have these sizes, or fail. It ends by itself with the last of them. */
async function swept(batches: (number | Error)[], everyMs: number): Promise<{ pauses: number; logged: string[] }> {
  const done = Promise.withResolvers<void>()
  const logged: string[] = []
  let pauses = 0
  const sweep = openSweep({
    async sweep() {
      const next = batches.shift()
      if (batches.length === 0) done.resolve()
      if (next instanceof Error) throw next
      return next ?? 0
    },
    pauseMs: () => ++pauses && 0,
    log: openLog('error', line => void logged.push((JSON.parse(line) as { message: string }).message)),
    failed: 'Rows could not be removed',
    everyMs,
  })
  await done.promise
  await sweep.close()
  return { pauses, logged }
}

test('a sweep removes batches until one is empty, with a pause after each', async () => {
  expect(await swept([3, 2, 0, 0], 1)).toEqual({ pauses: 2, logged: [] })
})

test('a sweep goes on after an error, and logs it unless a retry may help', async () => {
  const busy = new Failure('disk_full', 'The disk is full.')
  expect(await swept([busy, new Error('damaged'), 1, 0], 1)).toEqual({
    pauses: 1,
    logged: ['Rows could not be removed'],
  })
})

test('closing waits for the batch that runs, and begins no other', async () => {
  const began = Promise.withResolvers<void>()
  let [open, batches] = [0, 0]
  const sweep = openSweep({
    async sweep() {
      open++
      batches++
      began.resolve()
      await delay(20)
      open--
      return 1
    },
    pauseMs: () => 0,
    log: openLog('error', () => {}),
    failed: '',
    everyMs: 1,
  })
  await began.promise
  await sweep.close()
  expect([open, batches]).toEqual([0, 1])
})
