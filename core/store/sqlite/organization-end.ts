import { conflict } from '../../failure.ts'
import type { Statements } from '../method-table.ts'
import { type ActiveWork, filePurposes, type WaitingJob, waitingOf } from '../store.ts'
import { eraseConversations } from './conversations.ts'
import type { Connection } from './database.ts'
import { type EndingRow, endingColumns } from './job-end.ts'
import { openOrganizationRows, refuseDeleted, refuseMachineOwner } from './organizations.ts'
import { eraseResponses } from './responses.ts'
import { openWorkflowRemoval } from './workflows.ts'
import type { WriteContext } from './write-context.ts'

/**
 * A query of the unfinished jobs of an organization (`:id`) that are not of an execution. Three partial indexes instead
 * of one of its own, which every job would have to write. Each has unfinished jobs only.
 */
export const unfinishedJobs = (columns: string, and = ''): string =>
  [
    "jobs INDEXED BY jobs_due WHERE status = 'pending' AND not_before = 0",
    "jobs INDEXED BY jobs_delayed WHERE status = 'pending' AND not_before > 0",
    "jobs INDEXED BY jobs_processing WHERE status = 'processing'",
  ]
    .map(from => `SELECT ${columns} FROM ${from} AND organization_id = :id AND execution IS NULL ${and}`)
    .join(' UNION ALL ')

/**
 * The writer's commands that end an organization or its work. Deleting marks it and ends its tokens in one transaction;
 * its work is cancelled and its objects are erased in batches, so that other commands never wait long.
 */
export function organizationEndCommands(connection: Connection, context: WriteContext) {
  const { effects, flow, outbox, audit, endJob, forgetJob, eachRow, giveUpJob, giveUpExecution } = context
  const one = openOrganizationRows(connection)
  const active = unfinishedJobs(`${endingColumns}, class, rank`)
  const activeJobs = connection.query<EndingRow & Pick<WaitingJob, 'class' | 'rank'>>`${active} LIMIT :limit`
  const countJobs = connection.scalar<number>`SELECT count(*) FROM (${active})`
  const activeExecutions = connection.query<{ number: number; id: string }>`SELECT number, id FROM executions
    WHERE organization_id = ? AND finished_at IS NULL LIMIT ?`
  const countExecutions = connection.scalar<number>`SELECT count(*) FROM executions WHERE organization_id = ?
    AND finished_at IS NULL`
  const setDeleted = connection.statement`UPDATE organizations
    SET status = 'deleted', deleted_name = name, name = id, updated_at = ? WHERE id = ?`
  const revokeTokens = connection.statement`UPDATE tokens SET status = 'revoked', revoked_at = ?
    WHERE organization_id = ? AND status <> 'revoked'`
  const removeUsers = connection.statement`UPDATE users SET removed_at = ?, updated_at = ? WHERE organization_id = ?
    AND removed_at IS NULL`
  const expireExecutions = connection.statement`UPDATE executions SET expires_at = :at WHERE number IN
    (SELECT number FROM executions WHERE organization_id = :id AND finished_at IS NOT NULL AND (expires_at IS NULL
    OR expires_at > :at) LIMIT :limit)`
  const leftExecutions = connection.scalar<number>`SELECT 1 FROM executions WHERE organization_id = ? LIMIT 1`
  const endedJobs = connection.query<EndingRow>`SELECT ${endingColumns} FROM jobs WHERE organization_id = ?
    AND finished_at IS NOT NULL AND execution IS NULL LIMIT ?`
  const files = filePurposes.map(
    purpose =>
      connection.scalar<string>`SELECT id FROM files WHERE organization_id = ? AND purpose = '${purpose}'
      AND removed_at IS NULL LIMIT ?`,
  )
  const workflows = connection.scalar<string>`SELECT id FROM workflows WHERE organization_id = ? LIMIT ?`
  const dropWorkflow = openWorkflowRemoval(connection)
  const removeEndpoints = connection.statement`DELETE FROM webhook_endpoints WHERE organization_id = ?`
  const setErased = connection.statement`UPDATE organizations SET erased_at = ? WHERE id = ?`
  const endBatches = connection.statement`UPDATE batches
    SET status = 'cancelled', ending = 'cancelled', failed = total - completed, finished_at = ?
    WHERE organization_id = ? AND finished_at IS NULL`
  const dropLines = connection.statement`DELETE FROM batch_lines WHERE batch = :batch AND line IN
    (SELECT line FROM batch_lines WHERE batch = :batch LIMIT :limit)`
  const someBatch = connection.scalar<number>`SELECT number FROM batches WHERE organization_id = ? LIMIT 1`
  const dropBatch = connection.statement`DELETE FROM batches WHERE number = ?`
  const responses = eraseResponses(connection)
  const conversations = eraseConversations(connection)
  const dropRuns = connection.statement`DELETE FROM recent_runs WHERE organization_id = ?`

  const activeWork = (id: string): ActiveWork => ({
    jobs: countJobs.get({ id })!,
    executions: countExecutions.get(id)!,
  })

  function cancel(id: string, at: number, limit: number): ActiveWork {
    // First, so that the ends of their lines' jobs feed no more.
    endBatches.run(at, id)
    const executions = activeExecutions.all(id, limit)
    eachRow(
      executions,
      ({ number }) => flow.advance(number, { type: 'cancelled', at }),
      ({ number }) => giveUpExecution(number, at),
    )
    const jobs = activeJobs.all({ id, limit })
    eachRow(
      jobs,
      job => endJob(job, { status: 'cancelled', at }),
      job => giveUpJob(job, at),
    )
    for (const job of jobs) effects.add('withdrawn', waitingOf(job))
    return { jobs: jobs.length, executions: executions.length }
  }

  return {
    'organizations.activeWork': activeWork,

    'organizations.cancelWork': cancel,

    'organizations.remove'(id, force, by, at) {
      const row = one(id)
      if (!row) return undefined
      refuseDeleted(row)
      refuseMachineOwner(row, 'deleted')
      const { jobs, executions } = activeWork(id)
      if (jobs + executions > 0 && !force)
        throw conflict(
          `The organization '${row.name}' has unfinished work: ${jobs} jobs and ${executions} executions. Wait for their end, or delete it with force, which cancels them.`,
        )
      setDeleted.run(at, id)
      const tokensRevoked = revokeTokens.run(at, id).changes
      removeEndpoints.run(id)
      outbox.endpointsChanged()
      const usersRemoved = removeUsers.run(at, at, id).changes
      const before = { name: row.name, status: row.status }
      const after = { status: 'deleted', tokens_revoked: tokensRevoked, users_removed: usersRemoved }
      audit({ organizationId: id, id, at, by, action: 'organization.deleted', before, after })
      return { tokensRevoked, usersRemoved }
    },

    /** Ended executions are left to the sweep. */
    'organizations.erase'(id, at, limit) {
      const row = one(id)
      if (row?.status !== 'deleted') return { files: 0, workflows: 0, more: false, done: true }
      const work = cancel(id, at, limit)
      const expired = expireExecutions.run({ id, at, limit }).changes
      const jobs = endedJobs.all(id, limit)
      for (const job of jobs) forgetJob(job, at)
      let removed = 0
      for (const ofPurpose of files)
        for (const file of ofPurpose.all(id, limit)) {
          context.files.remove(id, file, at)
          removed++
        }
      const ids = workflows.all(id, limit)
      for (const workflow of ids) dropWorkflow(id, workflow)
      const answers = responses(id, limit) + conversations(id, limit)
      const batch = someBatch.get(id)
      if (batch !== undefined && dropLines.run({ batch, limit }).changes < limit) dropBatch.run(batch)
      const objects = work.jobs + work.executions + expired + jobs.length + removed + ids.length + answers
      const more = objects > 0 || batch !== undefined
      const done = !more && leftExecutions.get(id) === undefined
      if (done) {
        dropRuns.run(id)
        setErased.run(at, id)
      }
      return { files: removed, workflows: ids.length, more, done }
    },
  } satisfies Statements
}
