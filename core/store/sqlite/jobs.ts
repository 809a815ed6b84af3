import { Failure } from '../../failure.ts'
import { noUsage } from '../../usage.ts'
import type { LedgerRows } from '../ledger-rows.ts'
import { limitFailure } from '../limits.ts'
import type { JobClaim, NewJob } from '../store.ts'
import type { Connection } from './database.ts'
import { type EndingRow, endingColumns, openCompletion } from './job-end.ts'
import { openCallRows } from './ledger.ts'
import { openLibraryRows } from './library.ts'
import { openResultRows, type WrittenOutcome } from './results.ts'
import type { WriteContext } from './write-context.ts'

/**
 * The writer's commands that submit and end jobs. Each runs inside the writer's transaction and may throw at any point:
 * it is then rolled back, and may be run again. They return little, because the caller knows its job or reads it.
 */
export function jobCommands(connection: Connection, context: WriteContext) {
  const { ledger, jobCounts, requeued, use, keys, files, endJob: end } = context
  const insertInputs = connection.statement`INSERT INTO job_inputs (number, inputs) VALUES (?, ?)`
  const attempt = connection.query<EndingRow>`SELECT ${endingColumns} FROM jobs WHERE organization_id = ? AND id = ?
    AND status = 'processing' AND boot = ? AND claims = ?`
  const current = connection.query<EndingRow>`SELECT ${endingColumns} FROM jobs WHERE organization_id = ? AND id = ?`
  const retry = connection.statement`UPDATE jobs
    SET status = 'pending', boot = NULL, error = ?, engine_id = coalesce(?, engine_id), not_before = ?,
    started_at = NULL, updated_at = ?, energy_mj = ? + iif(gpu_ms IS NULL, 0, energy_mj),
    gpu_ms = coalesce(gpu_ms, 0) + ? WHERE number = ?`
  const moveTo = connection.statement`UPDATE jobs SET requested_model = coalesce(requested_model, model_id), model_id = ?,
    fallback_reason = ?, held = ?, max_attempts = max_attempts + attempt WHERE number = ?`
  const cache = connection.statement`INSERT INTO cached_results (key, job_id) VALUES (?, ?) ON CONFLICT (key) DO UPDATE
    SET job_id = excluded.job_id`
  const insertResult = openResultRows(connection)
  // Appends to the stored JSON array.
  const addLogs = connection.statement`INSERT INTO job_logs (number, lines) VALUES (?, ?) ON CONFLICT (number) DO UPDATE
    SET lines = substr(lines, 1, length(lines) - 1) || ',' || substr(excluded.lines, 2)`
  const rows = openJobRows(connection, context)
  const completion = openCompletion(connection, context)
  const addToLibrary = openLibraryRows(connection)
  const findCall = openCallRows(connection)

  function keepLogs({ number }: EndingRow, { logs }: WrittenOutcome): void {
    if (logs !== null && logs !== '[]') addLogs.run(number, logs)
  }

  function complete(
    claim: JobClaim,
    outcome: Extract<WrittenOutcome, { status: 'completed' }>,
    next?: string,
  ): boolean {
    const row = completion.take(claim, outcome)
    if (!row) return false
    const { result, inputs, cacheKey } = outcome
    keepLogs(row, outcome)
    insertResult(row.number, result)
    for (const file of outcome.files) files.add(file)
    for (const item of outcome.library) addToLibrary(item)
    if (inputs !== undefined) insertInputs.run(row.number, inputs)
    if (cacheKey !== undefined) cache.run(cacheKey, row.id)
    completion.follow(row, outcome, next)
    return true
  }

  /**
   * Stores all jobs of an organization, or none: null for each that is stored, or the id of the job that the same key
   * created before.
   */
  function addJobs(jobs: readonly NewJob[]): (string | null)[] | Failure {
    const holders = jobs.map(job => keys.assign(job) ?? null)
    const fresh = jobs.filter((_, at) => holders[at] === null)
    const [first] = fresh
    const reached = first?.limits && use.forbidsJobs(first.organizationId, first.limits, fresh.length)
    for (const job of fresh)
      if (reached) keys.release(job)
      else rows.add(job)
    return reached ? limitFailure(reached) : holders
  }

  return {
    addJobs,

    addJob(job: NewJob): string | null | Failure {
      const added = addJobs([job])
      return added instanceof Failure ? added : added[0]!
    },

    /** False: the claim no longer holds, and nothing was changed. */
    settleJob(claim: JobClaim, outcome: WrittenOutcome, next?: string): boolean {
      const { status, engineId, at } = outcome
      if (status === 'completed') return complete(claim, outcome, next)
      const row = attempt.get(claim.organizationId, claim.id, claim.boot, claim.claims)
      if (!row) return false
      keepLogs(row, outcome)
      const { usage = noUsage } = outcome
      if (outcome.retryAt === null) end(row, { status, at, error: outcome.error, engineId, usage })
      else {
        const error = JSON.stringify(outcome.error)
        const { gpuMs = 0, energyMj = null } = usage
        retry.run(error, engineId, Math.max(1, outcome.retryAt), at, energyMj, gpuMs, row.number)
        const { fallback } = outcome
        if (fallback) moveTo.run(fallback.modelId, fallback.reason, fallback.held, row.number)
        jobCounts.move(row.organizationId, 'processing', 'pending')
        requeued(row, at, outcome.error)
      }
      return true
    },

    /** Records finished calls. Skips those that are recorded already, so that a batch may be sent again. */
    recordCalls(rows: LedgerRows, texts: readonly string[] = []): void {
      ledger.appendCalls(rows)
      for (const text of texts) ledger.appendCalls(JSON.parse(text) as LedgerRows)
    },

    /** False: there is no such job yet, although there may be one when this is reported. */
    cancelJob(organizationId: string, id: string, at: number): boolean {
      const row = current.get(organizationId, id)
      const status = row?.status ?? findCall(organizationId, id)?.status
      if (status === 'completed' || status === 'failed')
        throw new Failure('job_already_finished', `The job ${id} has already ended: it is ${status}.`)
      if (row && status !== 'cancelled') end(row, { status: 'cancelled', at })
      return status !== undefined
    },
  }
}

/** Prepares the insertion of a pending job with values for these columns. */
function openJobInsert(connection: Connection, columns: string) {
  const values = columns.split(',').map(() => '?')
  return connection.statement`INSERT INTO jobs (status, attempt, claims, crashes, ${columns})
    VALUES ('pending', 0, 0, 0, ${values.join(', ')})`
}

/** Inserts the rows of pending jobs, in the caller's transaction. */
export function openJobRows(
  connection: Connection,
  { jobCounts, events, outbox }: Pick<WriteContext, 'jobCounts' | 'events' | 'outbox'>,
) {
  const usual = `organization_id, id, token_id, task, model_id, class, priority, rank, max_attempts, not_before, held, relayed,
    created_at, updated_at`
  const optional = `slug, start_by, timeout_ms, retention_ms, metadata, region, webhook, batch, batch_line, requested_model,
    traceparent`
  // Most jobs have no optional values, and binding nulls costs more than SQLite's work with them.
  const insertUsual = openJobInsert(connection, usual)
  const insertWhole = openJobInsert(connection, `${usual}, ${optional}`)
  const insertInputs = connection.statement`INSERT INTO job_inputs (number, inputs) VALUES (?, ?)`

  function insert(job: NewJob, batch: number | null): number {
    const { createdAt, notBefore } = job
    const values = [
      job.organizationId,
      job.id,
      job.tokenId,
      job.task,
      job.modelId,
      job.class ?? 'async',
      job.priority,
      job.rank,
      job.maxAttempts,
      notBefore <= createdAt ? 0 : notBefore,
      job.held ?? 0,
      job.relayed ? 1 : 0,
      createdAt,
      createdAt,
    ]
    const more = [
      job.slug,
      job.startBy,
      job.timeoutMs,
      job.retentionMs,
      job.metadata,
      job.region ?? null,
      job.webhook ? JSON.stringify(job.webhook) : null,
      batch,
      batch === null ? null : job.batch!.line,
      job.requestedModel ?? null,
      job.traceparent ?? null,
    ]
    const { lastInsertRowid } = more.every(value => value === null)
      ? insertUsual.run(values)
      : insertWhole.run(values, more)
    return Number(lastInsertRowid)
  }

  return {
    /** `batch`: the number of the batch of which the job is a line. */
    add(job: NewJob, batch: number | null = null): void {
      const number = insert(job, batch)
      if (job.webhook) outbox.ownAdded()
      insertInputs.run(number, job.inputs)
      events.add(number, job.organizationId, 'job.created', 0, job.createdAt)
      jobCounts.move(job.organizationId, undefined, 'pending')
    },
  }
}
