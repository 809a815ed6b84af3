import type { NewJob } from '../store.ts'
import type { Connection } from './database.ts'
import type { WriteContext } from './write-context.ts'

/** Inserts the rows of pending jobs, in the caller's transaction. */
export function openJobRows(
  connection: Connection,
  { jobCounts, events, outbox }: Pick<WriteContext, 'jobCounts' | 'events' | 'outbox'>,
) {
  const insert = connection.prepare(
    `INSERT INTO jobs (organization_id, id, token_id, task, model_id, slug, class, priority, rank, status, attempt,
       max_attempts, claims, crashes, not_before, start_by, timeout_ms, retention_ms, metadata, region, webhook, held,
       created_at, updated_at, batch, batch_line)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 'pending', 0, ?, 0, 0, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  )
  const insertInputs = connection.prepare('INSERT INTO job_inputs (number, inputs) VALUES (?, ?)')

  return {
    /** `batch`: the number of the batch of which the job is a line. */
    add(job: NewJob, batch: number | null = null): void {
      const { lastInsertRowid } = insert.run(
        job.organizationId,
        job.id,
        job.tokenId,
        job.task,
        job.modelId,
        job.slug,
        job.class ?? 'async',
        job.priority,
        job.rank,
        job.maxAttempts,
        job.notBefore <= job.createdAt ? 0 : job.notBefore,
        job.startBy,
        job.timeoutMs,
        job.retentionMs,
        job.metadata,
        job.region ?? null,
        job.webhook ? JSON.stringify(job.webhook) : null,
        job.held ?? 0,
        job.createdAt,
        job.createdAt,
        batch,
        batch === null ? null : job.batch!.line,
      )
      if (job.webhook) outbox.ownAdded()
      insertInputs.run(lastInsertRowid, job.inputs)
      events.add(lastInsertRowid, job.organizationId, 'job.created', 0, job.createdAt)
      jobCounts.move(job.organizationId, undefined, 'pending')
    },
  }
}
