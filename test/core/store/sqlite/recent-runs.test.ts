import { join } from 'node:path'
import { expect, test } from 'vitest'
import { addLedgerRow, type LedgerRows } from '../../../../core/store/ledger-rows.ts'
import { openDatabase } from '../../../../core/store/sqlite/database.ts'
import { openRecentRuns, recentRunReads } from '../../../../core/store/sqlite/recent-runs.ts'
import { finishedCall } from '../../../store/conformance/records.ts'
import { openTestStore, organizationId } from '../_store.ts'

test('the last 64 completed runs of a task on a model are kept, also over a restart and a rollback', async () => {
  await using opened = await openTestStore()
  await opened.store.close()
  const connection = openDatabase(join(opened.dataDir, 'infer.db'))
  const { 'jobs.recentRuns': recentRuns } = recentRunReads(connection)
  const read = (modelId = 'm') => {
    const found = recentRuns(organizationId, { modelId, task: 'std/chat-completion' })
    return found.map(({ runMs }) => runMs).toSorted((a, b) => a - b)
  }
  let runs = openRecentRuns(connection)
  const row = (ms: number, more: object = {}) => {
    const rows: LedgerRows = []
    const finished = finishedCall({
      modelId: 'm',
      task: 'std/chat-completion',
      startedAt: 1_000,
      finishedAt: 1_000 + ms,
    })
    addLedgerRow(rows, 'sync', { ...finished, ...more })
    return rows
  }
  const commit = (ms: number, more: object = {}) => {
    runs.add(row(ms, more))
    runs.write()
  }
  for (let ms = 1; ms <= 60; ms++) commit(ms)
  commit(500, { status: 'failed' })
  commit(500, { startedAt: null })
  commit(7, { modelId: 'other' })
  expect([read().length, read('other')]).toEqual([60, [7]])
  // The place after the last one is known after a restart, too.
  runs = openRecentRuns(connection)
  for (let ms = 61; ms <= 70; ms++) commit(ms)
  expect(read()).toEqual(Array.from({ length: 64 }, (_, at) => at + 7))
  const revert = runs.mark()
  runs.add(row(900))
  revert()
  runs.write()
  expect(read()).not.toContain(900)
  connection.close()
})
