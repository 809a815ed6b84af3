import { join } from 'node:path'
import { openDatabase } from '../../core/store/sqlite/database.ts'
import type { NewJob } from '../../core/store/store.ts'

type Submission = Omit<NewJob, 'rank'>

/** The baseline of the store benchmarks: jobs are rows of one table, and all commands of a tick share one commit. */
export function openBareWriter(directory: string) {
  const connection = openDatabase(join(directory, 'bare.db'))
  connection.exec(`CREATE TABLE jobs (id TEXT PRIMARY KEY, idempotency TEXT UNIQUE, body_hash TEXT, organization TEXT,
    token TEXT, task TEXT, model TEXT, inputs TEXT, priority INTEGER, state TEXT, attempt INTEGER,
    max_attempts INTEGER, boot TEXT, result TEXT, created_at INTEGER); CREATE INDEX jobs_state ON jobs (state);`)
  const insert = connection.prepare(
    `INSERT INTO jobs (id, idempotency, body_hash, organization, token, task, model, inputs, priority, state,
       attempt, max_attempts, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 'pending', 0, ?, ?)
     ON CONFLICT (idempotency) DO NOTHING`,
  )
  const [begin, commit] = [connection.prepare('BEGIN IMMEDIATE'), connection.prepare('COMMIT')]
  let queue: { it: Submission; done: () => void }[] = []
  function flush() {
    const group = queue
    queue = []
    begin.run()
    for (const { it } of group)
      insert.run(
        it.id,
        it.idempotency!.key,
        it.idempotency!.bodyHash,
        it.organizationId,
        it.tokenId,
        it.task,
        it.modelId,
        it.inputs,
        it.priority,
        it.maxAttempts,
        it.createdAt,
      )
    commit.run()
    for (const { done } of group) done()
  }
  return {
    submit: (it: Submission) =>
      new Promise<void>(done => {
        if (queue.push({ it, done }) === 1) setImmediate(flush)
      }),
    close: () => connection.close(),
  }
}
