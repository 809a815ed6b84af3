import { hash } from 'node:crypto'
import { Failure } from '../../failure.ts'
import { pick } from '../../members.ts'
import type { Statements } from '../method-table.ts'
import type { IdempotencyKey, IdempotencyRecord, NewJob } from '../store.ts'
import { openInsert, selected } from './columns.ts'
import type { Connection } from './database.ts'
import { type KeyDigests, openKeyDigests, openKeyNumbers } from './key-digests.ts'

/** How long an idempotency key is kept. */
export const keyLifetimeMs = 24 * 3_600_000

const digestOf = (organizationId: string, key: string): string =>
  hash('sha256', `${organizationId}\n${key}`, 'base64url').slice(0, 22)

/**
 * Finds the id of the work to which a key is assigned. Undefined if the key has expired, or if its job was removed before
 * it started: then no work was done for it.
 */
function openHolders(connection: Connection, numbers: Pick<KeyDigests, 'of'>) {
  const find = connection.query<Pick<IdempotencyRecord, 'bodyHash' | 'createdAt'> & { jobId: string }>`SELECT
    ${selected('jobId, bodyHash, createdAt')} FROM idempotency_keys WHERE number = ? AND digest = ?`
  const withdrawn = connection.scalar<1>`SELECT 1 FROM ledger WHERE organization_id = ? AND job_id = ?
    AND started_at IS NULL AND kind = 'async' AND NOT EXISTS (SELECT 1 FROM jobs
    WHERE organization_id = ledger.organization_id AND id = ledger.job_id)`

  return (
    digest: string,
    organizationId: string,
    { bodyHash }: Pick<IdempotencyKey, 'bodyHash'>,
    now: number,
  ): string | undefined => {
    const number = numbers.of(digest)
    const row = number === undefined ? undefined : find.get(number, digest)
    if (!row || now - row.createdAt >= keyLifetimeMs || withdrawn.get(organizationId, row.jobId)) return undefined
    if (row.bodyHash !== bodyHash)
      throw new Failure(
        'idempotency_key_reused',
        'This Idempotency-Key was used with another body in the last 24 hours. Send a new key with a new request.',
      )
    return row.jobId
  }
}

/** The same on a connection that only reads. */
export function openKeyHolders(connection: Connection) {
  const numbers = openKeyNumbers(connection)
  const holderOf = openHolders(connection, numbers)
  numbers.update()
  return (organizationId: string, key: IdempotencyKey, now: number): string | undefined => {
    numbers.update()
    return holderOf(digestOf(organizationId, key.key), organizationId, key, now)
  }
}

/** Assigns idempotency keys to jobs, executions and batches. */
export function openIdempotencyKeys(connection: Connection) {
  const insert = connection.statement`INSERT INTO idempotency_keys (digest, body_hash, job_id, created_at)
    VALUES (?, ?, ?, ?)`
  const drop = connection.statement`DELETE FROM idempotency_keys WHERE number = ? AND digest = ?`
  const digests = openKeyDigests(connection)
  const holderOf = openHolders(connection, digests)

  return {
    ...pick(digests, 'begin', 'mark', 'write', 'forget'),
    /** Assigns its key to new work. Returns the id of the work that already has it; undefined if the new work has it now. */
    assign({ organizationId, id, createdAt, idempotency }: KeyedWork): string | undefined {
      if (idempotency === null) return undefined
      const { key, bodyHash, at = createdAt } = idempotency
      const digest = digestOf(organizationId, key)
      const holder = holderOf(digest, organizationId, idempotency, at)
      if (holder !== undefined) return holder
      const { lastInsertRowid } = insert.run(digest, bodyHash, id, at)
      digests.add(digest, Number(lastInsertRowid))
      return undefined
    },
    /** Takes the key back from work that is not stored after all, so that the same request may be sent again. */
    release({ organizationId, idempotency }: KeyedWork): void {
      if (idempotency === null) return
      const digest = digestOf(organizationId, idempotency.key)
      drop.run(digests.of(digest), digest)
    },
  }
}

/** New work with its idempotency key. */
type KeyedWork = Pick<NewJob, 'organizationId' | 'id' | 'createdAt' | 'idempotency'>

/** The work to which a key is assigned. Throws Failure `output_expired` if it is no longer kept. */
export function keptWork<Work>(kind: 'job' | 'execution', holder: string, found: Work | undefined): Work {
  if (found !== undefined) return found
  throw new Failure(
    'output_expired',
    `This Idempotency-Key made the ${kind} ${holder}, which is no longer kept. Send a new key to run it again.`,
  )
}

/** Deletes up to `limit` keys of jobs, and as many replies, created before `before`, oldest first. Returns how many. */
export const forgetKeys = (connection: Connection) => {
  const oldest = connection.query<{ last: number | null }>`SELECT max(number) AS last FROM (SELECT number, created_at
    FROM idempotency_keys WHERE number < (SELECT max(number) FROM idempotency_keys) ORDER BY number LIMIT ?)
    WHERE created_at < ?`
  const gone = connection.statement`DELETE FROM key_digests WHERE number <= ? AND digest IN
    (SELECT digest FROM idempotency_keys WHERE number <= ? AND created_at < ?)`
  const keys = connection.statement`DELETE FROM idempotency_keys WHERE number <= ? AND created_at < ?`
  const replies = connection.statement`DELETE FROM replies WHERE created_at < ? AND number IN
    (SELECT number FROM replies ORDER BY number LIMIT ?)`
  return (before: number, limit: number): number => {
    const { changes } = replies.run(before, limit)
    // The newest key stays, so that no number is given twice.
    const { last } = oldest.get(limit, before)!
    if (last === null) return changes
    gone.run(last, last, before)
    return changes + keys.run(last, before).changes
  }
}

const replyFields = 'bodyHash, status, body, jobId, createdAt'

export function idempotencyCommands(connection: Connection) {
  const drop = connection.statement`DELETE FROM replies WHERE digest = ? AND created_at <= ?`
  const insert = openInsert(connection, 'replies', `digest, ${replyFields}`, 'ON CONFLICT (digest) DO NOTHING')
  return {
    /** The first reply stays until it expires: a key has one reply. */
    'idempotency.keep'(digest, reply) {
      drop.run(digest, reply.createdAt - keyLifetimeMs)
      insert({ ...reply, digest })
    },
  } satisfies Statements
}

export function idempotencyReads(connection: Connection) {
  const one = connection.query<IdempotencyRecord>`SELECT ${selected(replyFields)} FROM replies WHERE digest = ?`
  return { 'idempotency.find': digest => one.get(digest) } satisfies Statements
}
