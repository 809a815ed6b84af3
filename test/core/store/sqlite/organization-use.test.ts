import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openDatabase } from '../../../../core/store/sqlite/database.ts'
import { migrations } from '../../../../core/store/sqlite/migrations.ts'
import { maxCrashes } from '../../../../core/store/sqlite/recovery.ts'
import { openWriteContext } from '../../../../core/store/sqlite/write-context.ts'
import { claimWaiting, newFile, newJob, openTestStore, organizationId, temporaryDirectory } from '../_store.ts'

test('jobs of a killed server still count; one that is not tried again does not', async () => {
  using directory = temporaryDirectory()
  const { path: dataDir } = directory
  const first = await openTestStore({ dataDir })
  for (let at = 0; at < 3; at++) await first.store.jobs.submit(newJob())
  const [once, often] = await claimWaiting(first.store, { limit: 2 })
  const connection = openDatabase(join(dataDir, 'infer.db'))
  connection.prepare("UPDATE jobs SET boot = 'dead' WHERE id IN (?, ?)").run(once!.id, often!.id)
  connection.prepare('UPDATE jobs SET crashes = ? WHERE id = ?').run(maxCrashes - 1, often!.id)
  connection.close()
  await first.store.close()
  await using again = await openTestStore({ dataDir })
  expect(again.store.recovery).toMatchObject({ requeued: 1, crashed: 1 })
  expect((await again.store.organizations.use(organizationId, 0)).pendingJobs).toBe(2)
})

test('the count of jobs follows rollbacks of commands, of transactions and of a failed commit', async () => {
  await using opened = await openTestStore()
  for (let at = 0; at < 4; at++) await opened.store.jobs.submit(newJob())
  await opened.store.close()
  const connection = openDatabase(join(opened.dataDir, 'infer.db'))
  const { jobCounts } = openWriteContext(connection, 'boot_test')
  const add = () => jobCounts.move(organizationId, undefined, 'pending')
  const isRead = [false, true]
  for (const wasRead of isRead) {
    if (wasRead) expect(jobCounts.openOf(organizationId)).toBe(4)
    jobCounts.begin()
    const revert = jobCounts.mark()
    add()
    revert()
    expect(jobCounts.openOf(organizationId)).toBe(4)
    jobCounts.forget()
    jobCounts.begin()
    add()
    add()
    jobCounts.forget()
    expect(jobCounts.openOf(organizationId)).toBe(4)
  }
  // Other statements of this test's transactions are not run: only the counts in memory are compared.
  jobCounts.begin()
  add()
  expect(jobCounts.openOf(organizationId)).toBe(5)
  jobCounts.write()
  jobCounts.forget()
  expect(jobCounts.openOf(organizationId)).toBe(4)
  jobCounts.begin()
  jobCounts.move(organizationId, 'pending', undefined)
  jobCounts.write()
  // A transaction that changes no job and fails leaves the committed count.
  jobCounts.begin()
  jobCounts.forget()
  expect(jobCounts.openOf(organizationId)).toBe(3)
  connection.close()
})

test('an upgrade counts the bytes of the files that are there, without removed ones', async () => {
  using directory = temporaryDirectory()
  const { path: dataDir } = directory
  const before = migrations.filter(({ version }) => version < 9)
  const old = await openTestStore({ dataDir })
  await old.store.close()
  const connection = openDatabase(join(dataDir, 'infer.db'))
  // The schema before, in which nothing counts them.
  connection.exec(
    `DROP TABLE fallback_holds; ALTER TABLE jobs DROP COLUMN relayed; DROP TABLE conversation_links; DROP TABLE conversation_messages; DROP TABLE conversations; ALTER TABLE organizations DROP COLUMN call_storage;
     ALTER TABLE organizations DROP COLUMN local_only; ALTER TABLE tokens DROP COLUMN local_only;
     ALTER TABLE executions DROP COLUMN remaining_ms; ALTER TABLE execution_nodes DROP COLUMN items_waiting;
     ALTER TABLE executions DROP COLUMN budget;
     DROP TABLE execution_items; DROP INDEX jobs_execution; DROP INDEX jobs_awaiting; ALTER TABLE jobs DROP COLUMN item; CREATE INDEX jobs_execution ON jobs (execution, node) WHERE execution IS NOT NULL; ALTER TABLE execution_nodes DROP COLUMN items; ALTER TABLE execution_nodes DROP COLUMN items_running; ALTER TABLE execution_nodes DROP COLUMN items_completed; ALTER TABLE execution_nodes DROP COLUMN items_failed; ALTER TABLE execution_nodes DROP COLUMN items_cost;
     DROP INDEX executions_nested; DROP INDEX executions_of_parent; ALTER TABLE executions DROP COLUMN continues; ALTER TABLE executions DROP COLUMN depth; ALTER TABLE executions DROP COLUMN parent_job; ALTER TABLE executions DROP COLUMN parent_node; ALTER TABLE executions DROP COLUMN parent_execution;
     DROP TABLE recent_runs;
     DROP TRIGGER waits_end; DROP TABLE waits;
     DROP INDEX executions_queued; DROP INDEX executions_running; ALTER TABLE executions DROP COLUMN queued;
     ALTER TABLE jobs DROP COLUMN awaits; ALTER TABLE executions DROP COLUMN waiting;
     DROP TABLE key_digests; DROP TABLE last_indexed_key;
     ALTER TABLE execution_nodes DROP COLUMN skip_reason; ALTER TABLE executions DROP COLUMN traceparent; ALTER TABLE jobs DROP COLUMN traceparent;
     ALTER TABLE jobs DROP COLUMN requested_model; ALTER TABLE jobs DROP COLUMN fallback_reason;
     ALTER TABLE ledger DROP COLUMN requested_model; ALTER TABLE ledger DROP COLUMN fallback_reason;
     ALTER TABLE jobs DROP COLUMN reference_queue_ms; ALTER TABLE ledger DROP COLUMN reference_queue_ms; ALTER TABLE ledger DROP COLUMN time_to_first_token_ms;
     DROP INDEX executions_unfinished;
     DROP INDEX tokens_origin; ALTER TABLE tokens DROP COLUMN limits_parent; ALTER TABLE spend DROP COLUMN spent_below;
     DROP INDEX files_uploaded; DROP TABLE stored_bytes;
     DROP TABLE sessions; DROP TABLE responses; DROP TABLE batch_lines; DROP TABLE batches;
     ALTER TABLE jobs DROP COLUMN batch; ALTER TABLE jobs DROP COLUMN batch_line;
     DROP INDEX files_of_api; DROP INDEX files_of_purpose; ALTER TABLE files DROP COLUMN api_purpose;
     PRAGMA user_version = ${before.at(-1)!.version}`,
  )
  const insert = connection.prepare(
    `INSERT INTO files (id, organization_id, purpose, name, content_type, bytes, sha256, created_at, removed_at)
     VALUES (?, ?, 'upload', 'a', 'text/plain', ?, ?, 5, ?)`,
  )
  const { sha256 } = newFile()
  for (const [id, bytes, removedAt] of [
    ['file-1', 10, null],
    ['file-2', 20, 7],
    ['file-3', 40, null],
  ])
    insert.run(id, organizationId, bytes, sha256, removedAt)
  connection.close()
  await using opened = await openTestStore({ dataDir })
  expect(await opened.store.organizations.use(organizationId, 0)).toEqual({
    pendingJobs: 0,
    storedBytes: 50,
    uploadsToday: 3,
  })
})
