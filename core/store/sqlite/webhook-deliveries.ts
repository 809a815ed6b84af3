import { mapMembers } from '../../members.ts'
import { type Actor, theServer } from '../audit-records.ts'
import type { Statements } from '../method-table.ts'
import type {
  DeliveryRecord,
  DeliveryStatus,
  DeliverySubject,
  DeliveryTarget,
  DueDelivery,
  NewDelivery,
} from '../webhooks.ts'
import { recordIf } from './columns.ts'
import type { Connection } from './database.ts'
import type { WriteContext } from './write-context.ts'

interface OrderRow {
  number: number
  target: string
  object: string
  endpoint_id: string | null
  organization_id: string
}

/** Why a delivery ended that nothing has sent for its whole retention. */
const heldTooLong = 'The endpoint, or its organization, was disabled until the delivery was no longer kept.'
/** How long a delivery must be overdue to count as held: others are sent, or wait for their time or for an earlier one. */
const overdueMs = 86_400_000

/** The writer's commands for deliveries. */
export function webhookDeliveryCommands(connection: Connection, { audit, outbox }: WriteContext) {
  const insertBody = connection.statement`INSERT INTO webhook_bodies (number, body) SELECT number, ?
    FROM webhook_deliveries WHERE number = ? AND status = 'new'`
  const makePending = connection.statement`UPDATE webhook_deliveries SET status = 'pending' WHERE number = ?
    AND status = 'new'`
  const current = connection.query<OrderRow>`SELECT number, target, object, endpoint_id, organization_id
    FROM webhook_deliveries WHERE number = ? AND finished_at IS NULL`
  const record = connection.statement`UPDATE webhook_deliveries
    SET status = :status, attempts = attempts + 1, next_at = coalesce(:nextAt, next_at), attempted_at = :at,
    finished_at = :finishedAt, status_code = :statusCode, duration_ms = :durationMs, error = :error,
    response_body = :responseBody WHERE number = :number`
  const release = connection.statement`UPDATE webhook_deliveries SET waits = 0 WHERE waits = 1 AND number =
    (SELECT min(number) FROM webhook_deliveries WHERE target = ? AND object = ? AND finished_at IS NULL)`
  const disable = connection.statement`UPDATE webhook_endpoints
    SET enabled = 0, disabled_reason = 'gone', updated_at = ? WHERE organization_id = ? AND id = ? AND enabled = 1`
  const again = connection.query<OrderRow & { finished_at: number | null; status: string }>`SELECT number, target,
    object, endpoint_id, organization_id, finished_at, status FROM webhook_deliveries WHERE organization_id = ?
    AND id = ?`
  const restart = connection.statement`
    UPDATE webhook_deliveries SET status = 'pending', attempts = 0, next_at = :at, finished_at = NULL,
    waits = EXISTS (SELECT 1 FROM webhook_deliveries WHERE target = :target AND object = :object
      AND finished_at IS NULL AND number <> :number)
    WHERE number = :number`
  const bringForward = connection.statement`UPDATE webhook_deliveries SET next_at = ?, attempts = 0 WHERE number = ?`
  const ended = connection.scalar<number>`SELECT number FROM webhook_deliveries WHERE finished_at IS NOT NULL
    AND finished_at < ? ORDER BY finished_at LIMIT ?`
  const removedEndpoint = connection.scalar<string>`SELECT id FROM removed_webhook_endpoints LIMIT 1`
  const forgetEndpoint = connection.statement`DELETE FROM removed_webhook_endpoints WHERE id = ?`
  const ofEndpoint = connection.scalar<number>`SELECT number FROM webhook_deliveries WHERE endpoint_id = ? LIMIT ?`
  const held = connection.scalar<number>`SELECT number FROM webhook_deliveries WHERE finished_at IS NULL AND waits = 0
    AND at < :before AND next_at < :overdue ORDER BY at LIMIT :limit`
  const giveUp = connection.statement`UPDATE webhook_deliveries
    SET status = 'dead', finished_at = ?, error = coalesce(error, ?) WHERE number = ?`
  const dropBody = connection.statement`DELETE FROM webhook_bodies WHERE number = ?`
  const drop = connection.statement`DELETE FROM webhook_deliveries WHERE number = ?`

  function end(number: number, at: number): void {
    const row = current.get(number)
    if (!row) return
    giveUp.run(at, heldTooLong, number)
    release.run(row.target, row.object)
  }

  /** Deliveries of one removed endpoint. */
  function orphans(limit: number): number[] {
    const id = removedEndpoint.get()
    const found = id === undefined ? [] : ofEndpoint.all(id, limit)
    if (id !== undefined && found.length < limit) forgetEndpoint.run(id)
    return found
  }

  return {
    /** False: the organization has no such delivery. */
    redeliver(organizationId: string, id: string, at: number, by: Actor = theServer): boolean {
      const row = again.get(organizationId, id)
      if (!row) return false
      if (row.finished_at === null) bringForward.run(at, row.number)
      else restart.run({ at, target: row.target, object: row.object, number: row.number })
      // A delivery is no object of its own in the log: it belongs to an endpoint or, of a request, to the organization.
      const action = row.endpoint_id === null ? 'organization.webhook_redelivered' : 'webhook_endpoint.redelivered'
      const target = row.endpoint_id ?? organizationId
      audit({ organizationId, id: target, at, by, action, after: { delivery_id: id } })
      return true
    },

    ...({
      'webhooks.keepBodies'(bodies) {
        for (const { number, body } of bodies) if (insertBody.run(body, number).changes === 1) makePending.run(number)
      },

      'webhooks.settle'(attempt) {
        const { outcome, gone, ...columns } = attempt
        const row = current.get(attempt.number)
        if (!row) return false
        const finishedAt = outcome === 'retry' ? null : attempt.at
        record.run({ ...columns, status: outcome === 'retry' ? 'pending' : outcome, finishedAt })
        if (outcome !== 'retry') release.run(row.target, row.object)
        if (gone && row.endpoint_id !== null) {
          disable.run(attempt.at, row.organization_id, row.endpoint_id)
          outbox.endpointsChanged()
        }
        return true
      },

      'webhooks.sweep'(before, at, limit) {
        const waiting = held.all({ before, overdue: at - overdueMs, limit })
        for (const number of waiting) end(number, at)
        const gone = new Set([...ended.all(before, limit), ...orphans(limit)])
        for (const number of gone) {
          dropBody.run(number)
          drop.run(number)
        }
        return waiting.length + gone.size
      },
    } satisfies Statements),
  }
}

interface RecordRow extends Omit<DeliveryRecord, 'status'> {
  status: DeliveryStatus | 'new'
}

/** Reads of deliveries; short statements on a read-only connection. */
export function webhookDeliveryReads(connection: Connection) {
  const withoutBody = connection.query<Omit<NewDelivery, 'subject'> & { subject: string }>`SELECT number, id,
    organization_id AS organizationId, endpoint_id AS endpointId, form, origin, event, type, at, subject
    FROM webhook_deliveries WHERE status = 'new' ORDER BY number LIMIT ?`
  const first = `SELECT target FROM webhook_deliveries WHERE status = 'pending' AND waits = 0 AND target >`
  // Jumps from one target to the next in the index, however many deliveries each has.
  const targets = connection.query<DeliveryTarget>`WITH RECURSIVE found (target) AS (
    SELECT (${first} ? ORDER BY target LIMIT 1)
    UNION ALL
    SELECT (${first} found.target ORDER BY target LIMIT 1) FROM found WHERE found.target IS NOT NULL)
    SELECT found.target, (SELECT next_at FROM webhook_deliveries AS d
      WHERE d.status = 'pending' AND d.waits = 0 AND d.target = found.target ORDER BY next_at LIMIT 1) AS nextAt,
    CASE WHEN o.id IS NULL THEN 'removed' WHEN o.status = 'active' AND e.enabled IS NOT 0 THEN 'open' ELSE 'held' END AS state
    FROM found LEFT JOIN webhook_endpoints AS e ON e.id = found.target
    LEFT JOIN organizations AS o ON o.id = coalesce(e.organization_id, substr(found.target, 1, instr(found.target, ' ') - 1))
    WHERE found.target IS NOT NULL LIMIT ?`
  const due = connection.query<Omit<DueDelivery, 'secret'> & { version: number; previousUntil: number | null }>`
    SELECT d.number, d.id, d.organization_id AS organizationId, d.endpoint_id AS endpointId, coalesce(e.url, d.url) AS url,
    d.form, d.type, d.object, d.attempts, body, coalesce(e.secret_version, s.version, 1) AS version,
    CASE WHEN e.id IS NULL THEN s.previous_until ELSE e.previous_until END AS previousUntil,
    coalesce((SELECT traceparent FROM jobs AS j WHERE j.organization_id = d.organization_id AND j.id = d.object),
      (SELECT traceparent FROM executions AS x WHERE x.organization_id = d.organization_id AND x.id = d.object),
      (SELECT traceparent FROM batches AS b WHERE d.object = 'batch' AND b.organization_id = d.organization_id
        AND b.id = d.subject ->> '$.data.id')) AS traceparent
    FROM webhook_deliveries AS d JOIN webhook_bodies USING (number)
    LEFT JOIN webhook_endpoints AS e ON e.id = d.endpoint_id
    LEFT JOIN webhook_secrets AS s ON s.organization_id = d.organization_id
    WHERE d.status = 'pending' AND d.waits = 0 AND d.target = ? AND d.next_at <= ?
    ORDER BY d.next_at, d.number LIMIT ?`
  const columns = `d.id, d.organization_id AS organizationId, d.endpoint_id AS endpointId, coalesce(e.url, d.url) AS url,
    d.event, d.type, d.status, d.attempts, CASE WHEN d.finished_at IS NULL THEN d.next_at END AS nextAt, d.at AS createdAt,
    d.attempted_at AS attemptedAt, d.finished_at AS finishedAt, d.status_code AS statusCode, d.duration_ms AS durationMs,
    d.error, body AS requestBody, d.response_body AS responseBody
    FROM webhook_deliveries AS d LEFT JOIN webhook_bodies USING (number)
    LEFT JOIN webhook_endpoints AS e ON e.id = d.endpoint_id`
  const one = connection.query<RecordRow>`SELECT ${columns} WHERE d.organization_id = ? AND d.id = ?
    AND (d.endpoint_id IS NULL OR e.id IS NOT NULL)`
  const numberOf = connection.scalar<number>`SELECT number FROM webhook_deliveries WHERE organization_id = ? AND id = ?`
  const page = (where: string) =>
    connection.query<RecordRow>`SELECT ${columns} WHERE d.organization_id = :organizationId
      AND d.number < :before ${where} AND (d.endpoint_id IS NULL OR e.id IS NOT NULL) ORDER BY d.number DESC
      LIMIT :limit`
  // The planner uses a partial index only for a condition that is in the text.
  const conditions = {
    all: '',
    pending: 'AND d.finished_at IS NULL',
    delivered: "AND d.status = 'delivered'",
    dead: "AND d.status = 'dead'",
  }
  const pagesOf = (where: string) => mapMembers(conditions, condition => page(`${where} ${condition}`))
  const ofOrganization = pagesOf('')
  const ofEndpoint = pagesOf('AND d.endpoint_id = :endpointId')
  const unfinished = connection.scalar<number>`SELECT count(*) FROM
    (SELECT 1 FROM webhook_deliveries WHERE finished_at IS NULL LIMIT ?)`
  const dead = connection.scalar<number>`SELECT count(*) FROM
    (SELECT 1 FROM webhook_deliveries WHERE status = 'dead' LIMIT ?)`

  const recordOf = ({ status, ...row }: RecordRow): DeliveryRecord => ({
    ...row,
    status: status === 'new' ? 'pending' : status,
  })

  return {
    'webhooks.withoutBody': limit =>
      withoutBody.all(limit).map(row => ({ ...row, subject: JSON.parse(row.subject) as DeliverySubject })),
    'webhooks.targets': (after, limit) => targets.all(after, limit),
    'webhooks.due': (target, now, limit) =>
      due
        .all(target, now, limit)
        .map(({ version, previousUntil, ...row }) => ({ ...row, secret: { version, previousUntil } })),
    'webhooks.delivery': (organizationId, id) => recordIf(one.get(organizationId, id), recordOf),
    'webhooks.deliveries'(organizationId, filter) {
      const { limit, after, endpointId, status = 'all' } = filter
      const before = after === undefined ? Number.MAX_SAFE_INTEGER : (numberOf.get(organizationId, after) ?? 0)
      const pages = endpointId === undefined ? ofOrganization : ofEndpoint
      const query = { organizationId, limit, before, ...(endpointId === undefined ? {} : { endpointId }) }
      return pages[status].all(query).map(recordOf)
    },
    'webhooks.counts': limit => ({ pending: unfinished.get(limit)!, dead: dead.get(limit)! }),
  } satisfies Statements
}
