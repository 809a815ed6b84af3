import { hash } from 'node:crypto'
import { Failure } from '../../failure.ts'
import type { Task } from '../../tasks/tasks.ts'
import type { ClaimWish, FinishedJob, JobClaim, JobOutcome, JobStatus, NewJob, Usage } from '../store.ts'
import type { Connection } from './database.ts'
import { type Ledger, ledgerReads } from './ledger.ts'
import type { Tally } from './tally.ts'

/** How long an idempotency key is remembered. */
export const keyLifetimeMs = 24 * 3_600_000

interface AttemptRow {
  number: number
  token_id: string
  task: Task
  model_id: string
  engine_id: string | null
  status: JobStatus
  created_at: number
  started_at: number | null
}

const nothing: Usage = { inputTokens: 0, outputTokens: 0 }

/** What the bill of a job says that its end does not change. */
const billed = ({ organizationId, id }: { organizationId: string; id: string }, row: AttemptRow) => ({
  id,
  organizationId,
  tokenId: row.token_id,
  task: row.task,
  modelId: row.model_id,
  engineId: row.engine_id,
  createdAt: row.created_at,
  startedAt: row.started_at,
})

/**
 * What the writer does to jobs. Each function runs inside the writer's transaction and may throw at any point: it is
 * undone then, and may be run again. They answer with as little as they can: the caller knows its job, and reads what it does not know.
 */
export function jobCommands(
  connection: Connection,
  { boot, ledger, tally }: { boot: string; ledger: Ledger; tally: Tally },
) {
  const insert = connection.prepare(
    `INSERT INTO jobs (organization_id, id, queue_id, token_id, task, model_id, priority, status, attempt,
       max_attempts, claims, crashes, not_before, metadata, created_at, updated_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, 'pending', 0, ?, 0, 0, ?, ?, ?, ?)`,
  )
  const insertInputs = connection.prepare('INSERT INTO job_inputs (number, inputs) VALUES (?, ?)')
  const insertKey = connection.prepare(
    `INSERT INTO idempotency_keys (digest, body_hash, job_id, created_at) VALUES (?, ?, ?, ?)
     ON CONFLICT (digest) DO NOTHING`,
  )
  const findKey = connection.prepare<[string], { job_id: string; body_hash: string; created_at: number }>(
    'SELECT job_id, body_hash, created_at FROM idempotency_keys WHERE digest = ?',
  )
  const dropKey = connection.prepare('DELETE FROM idempotency_keys WHERE digest = ?')

  const undelay = connection.prepare(
    `UPDATE jobs SET not_before = 0 WHERE status = 'pending' AND not_before > 0 AND not_before <= ?`,
  )
  const nextModel = connection
    .prepare<[string], string | null>(
      `SELECT min(model_id) FROM jobs WHERE status = 'pending' AND not_before = 0 AND model_id > ?`,
    )
    .pluck()
  const due = connection.prepare<[string, number], { number: number; priority: number }>(
    `SELECT number, priority FROM jobs WHERE status = 'pending' AND not_before = 0 AND model_id = ?
     ORDER BY priority DESC, number LIMIT ?`,
  )
  const take = connection.prepare(
    `UPDATE jobs SET status = 'processing', attempt = attempt + 1, claims = claims + 1, boot = ?, started_at = ?,
       updated_at = ? WHERE number = ? AND status = 'pending'`,
  )

  const ofAttempt = 'number, token_id, task, model_id, engine_id, status, created_at, started_at'
  const attempt = connection.prepare<[string, string, string | null, number], AttemptRow>(
    `SELECT ${ofAttempt} FROM jobs
     WHERE organization_id = ? AND id = ? AND status = 'processing' AND boot = ? AND claims = ?`,
  )
  const current = connection.prepare<[string, string], AttemptRow>(
    `SELECT ${ofAttempt} FROM jobs WHERE organization_id = ? AND id = ?`,
  )
  const finish = connection.prepare(
    `UPDATE jobs SET status = ?, boot = NULL, error = ?, engine_id = coalesce(?, engine_id), input_tokens = ?,
       output_tokens = ?, cost = ?, updated_at = ?, finished_at = ? WHERE number = ?`,
  )
  const retry = connection.prepare(
    `UPDATE jobs SET status = 'pending', boot = NULL, error = ?, engine_id = coalesce(?, engine_id), not_before = ?,
       started_at = NULL, updated_at = ? WHERE number = ?`,
  )
  const insertResult = connection.prepare('INSERT INTO job_results (number, result) VALUES (?, ?)')
  const giveBack = connection.prepare(
    `UPDATE jobs SET status = 'pending', boot = NULL, attempt = attempt - 1, not_before = ?, started_at = NULL
     WHERE organization_id = ? AND id = ? AND status = 'processing' AND boot = ? AND claims = ?`,
  )
  const calls = ledgerReads(connection)

  /** The job that made the key, or undefined when the key is now this job's. */
  function keyHolder(job: NewJob, { key, bodyHash }: { key: string; bodyHash: string }): string | undefined {
    const { organizationId, id, createdAt } = job
    const digest = hash('sha256', `${organizationId}\n${key}`, 'base64url').slice(0, 22)
    if (insertKey.run(digest, bodyHash, id, createdAt).changes === 1) return undefined
    const holder = findKey.get(digest)!
    if (createdAt - holder.created_at >= keyLifetimeMs) {
      // A new row and not the old one changed: they are forgotten in the order of their rows.
      dropKey.run(digest)
      insertKey.run(digest, bodyHash, id, createdAt)
      return undefined
    }
    if (holder.body_hash !== bodyHash)
      throw new Failure(
        'idempotency_key_reused',
        'This Idempotency-Key was used with another body in the last 24 hours. Send a new key with a new request.',
      )
    return holder.job_id
  }

  return {
    /** Null when stored, otherwise the id of the job that the same key made before. */
    'jobs.submit'(job: NewJob): string | null {
      const holder = job.idempotency ? keyHolder(job, job.idempotency) : undefined
      if (holder !== undefined) return holder
      const { lastInsertRowid } = insert.run(
        job.organizationId,
        job.id,
        job.queueId,
        job.tokenId,
        job.task,
        job.modelId,
        job.priority,
        job.maxAttempts,
        job.notBefore <= job.createdAt ? 0 : job.notBefore,
        job.metadata,
        job.createdAt,
        job.createdAt,
      )
      insertInputs.run(lastInsertRowid, job.inputs)
      tally.move(undefined, 'pending')
      return null
    },

    /** The numbers of the jobs that are now this boot's to run, most urgent first. */
    'jobs.claim'({ limit, now, exclude = [], perModel = limit, running = {} }: ClaimWish): number[] {
      undelay.run(now)
      const found: { number: number; priority: number }[] = []
      for (let model = nextModel.get(''); model != null; model = nextModel.get(model)) {
        const room = Math.min(limit, perModel - (running[model] ?? 0))
        if (room > 0 && !exclude.includes(model)) found.push(...due.all(model, room))
      }
      const chosen = found.sort((a, b) => b.priority - a.priority || a.number - b.number).slice(0, limit)
      const taken = chosen.filter(({ number }) => take.run(boot, now, now, number).changes === 1)
      tally.move('pending', 'processing', taken.length)
      return taken.map(({ number }) => number)
    },

    /** False: the claim does not hold any more, and nothing was changed. */
    'jobs.settle'({ claim, outcome }: { claim: JobClaim; outcome: JobOutcome }): boolean {
      const row = attempt.get(claim.organizationId, claim.id, claim.boot, claim.claims)
      if (!row) return false
      const { status, engineId, at } = outcome
      if (status === 'failed' && outcome.retryAt !== null) {
        retry.run(JSON.stringify(outcome.error), engineId, Math.max(1, outcome.retryAt), at, row.number)
        tally.move('processing', 'pending')
        return true
      }
      const usage = status === 'completed' ? outcome.usage : nothing
      const cost = status === 'completed' ? outcome.cost : 0
      const error = status === 'failed' ? JSON.stringify(outcome.error) : null
      finish.run(status, error, engineId, usage.inputTokens, usage.outputTokens, cost, at, at, row.number)
      tally.move('processing', status)
      if (status === 'completed') insertResult.run(row.number, outcome.result)
      const failure = status === 'failed' ? outcome.error : null
      ledger.append([
        {
          ...billed(claim, row),
          engineId: engineId ?? row.engine_id,
          status,
          error: failure,
          usage,
          cost,
          finishedAt: at,
        },
      ])
      return true
    },

    /** False: the claim does not hold any more. */
    'jobs.release'({ claim, notBefore }: { claim: JobClaim; notBefore: number }): boolean {
      const { changes } = giveBack.run(notBefore, claim.organizationId, claim.id, claim.boot, claim.claims)
      tally.move('processing', 'pending', changes)
      return changes === 1
    },

    /** False: the organization has no such job. */
    'jobs.cancel'({ organizationId, id, at }: { organizationId: string; id: string; at: number }): boolean {
      const row = current.get(organizationId, id)
      const status = row?.status ?? calls.findCall(organizationId, id)?.status
      if (status === 'completed' || status === 'failed')
        throw new Failure('job_already_finished', `The job ${id} has already ended: it is ${status}.`)
      if (!row || status === 'cancelled') return status === 'cancelled'
      finish.run('cancelled', null, null, 0, 0, 0, at, at, row.number)
      tally.move(row.status, 'cancelled')
      ledger.append([
        {
          ...billed({ organizationId, id }, row),
          status: 'cancelled',
          error: null,
          usage: nothing,
          cost: 0,
          finishedAt: at,
        },
      ])
      return true
    },

    /** Calls that have ended. One that is there already is passed over, so that a batch may be sent again. */
    'jobs.record'(records: string): void {
      ledger.appendCalls(JSON.parse(records) as FinishedJob[])
    },
  }
}
