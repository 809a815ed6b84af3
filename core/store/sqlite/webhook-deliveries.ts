import { theServer } from '../audit-records.ts'
import type { Statements } from '../method-table.ts'
import { openAudit } from './audit.ts'
import type { Connection } from './database.ts'
import type { WebhookOutbox } from './webhook-outbox.ts'
import { webhookDeliveryReads } from './webhook-reads.ts'

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
export function webhookDeliveryCommands(
  connection: Connection,
  { outbox }: { outbox: Pick<WebhookOutbox, 'endpointsChanged'> },
) {
  const insertBody = connection.prepare(
    `INSERT INTO webhook_bodies (number, body) SELECT number, ? FROM webhook_deliveries WHERE number = ? AND status = 'new'`,
  )
  const makePending = connection.prepare(
    `UPDATE webhook_deliveries SET status = 'pending' WHERE number = ? AND status = 'new'`,
  )
  const current = connection.prepare<[number], OrderRow>(
    `SELECT number, target, object, endpoint_id, organization_id FROM webhook_deliveries
     WHERE number = ? AND finished_at IS NULL`,
  )
  const record = connection.prepare(
    `UPDATE webhook_deliveries SET status = :status, attempts = attempts + 1, next_at = coalesce(:nextAt, next_at),
       attempted_at = :at, finished_at = :finishedAt, status_code = :statusCode, duration_ms = :durationMs, error = :error,
       response_body = :responseBody WHERE number = :number`,
  )
  const release = connection.prepare(
    `UPDATE webhook_deliveries SET waits = 0 WHERE waits = 1 AND number = (
       SELECT min(number) FROM webhook_deliveries WHERE target = ? AND object = ? AND finished_at IS NULL)`,
  )
  const disable = connection.prepare(
    `UPDATE webhook_endpoints SET enabled = 0, disabled_reason = 'gone', updated_at = ?
     WHERE organization_id = ? AND id = ? AND enabled = 1`,
  )
  const again = connection.prepare<[string, string], OrderRow & { finished_at: number | null; status: string }>(
    `SELECT number, target, object, endpoint_id, organization_id, finished_at, status FROM webhook_deliveries
     WHERE organization_id = ? AND id = ?`,
  )
  const restart = connection.prepare(
    `UPDATE webhook_deliveries SET status = 'pending', attempts = 0, next_at = :at, finished_at = NULL,
       waits = EXISTS (SELECT 1 FROM webhook_deliveries WHERE target = :target AND object = :object
         AND finished_at IS NULL AND number <> :number)
     WHERE number = :number`,
  )
  const bringForward = connection.prepare('UPDATE webhook_deliveries SET next_at = ?, attempts = 0 WHERE number = ?')
  const ended = connection
    .prepare<[number, number], number>(
      'SELECT number FROM webhook_deliveries WHERE finished_at IS NOT NULL AND finished_at < ? ORDER BY finished_at LIMIT ?',
    )
    .pluck()
  const removedEndpoint = connection.prepare<[], string>('SELECT id FROM removed_webhook_endpoints LIMIT 1').pluck()
  const forgetEndpoint = connection.prepare('DELETE FROM removed_webhook_endpoints WHERE id = ?')
  const ofEndpoint = connection
    .prepare<[string, number], number>('SELECT number FROM webhook_deliveries WHERE endpoint_id = ? LIMIT ?')
    .pluck()
  const held = connection
    .prepare<[{ before: number; overdue: number; limit: number }], number>(
      `SELECT number FROM webhook_deliveries
       WHERE finished_at IS NULL AND waits = 0 AND at < :before AND next_at < :overdue ORDER BY at LIMIT :limit`,
    )
    .pluck()
  const giveUp = connection.prepare(
    `UPDATE webhook_deliveries SET status = 'dead', finished_at = ?, error = coalesce(error, ?) WHERE number = ?`,
  )
  const dropBody = connection.prepare('DELETE FROM webhook_bodies WHERE number = ?')
  const drop = connection.prepare('DELETE FROM webhook_deliveries WHERE number = ?')

  const reads = webhookDeliveryReads(connection)
  const audit = openAudit(connection)

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

    'webhooks.redeliver'(organizationId, id, at, by = theServer) {
      const row = again.get(organizationId, id)
      if (!row) return undefined
      if (row.finished_at === null) bringForward.run(at, row.number)
      else restart.run({ at, target: row.target, object: row.object, number: row.number })
      // A delivery is no object of its own in the log: it belongs to an endpoint or, of a request, to the organization.
      audit({
        organizationId,
        at,
        actor: by,
        action: row.endpoint_id === null ? 'organization.webhook_redelivered' : 'webhook_endpoint.redelivered',
        targetId: row.endpoint_id ?? organizationId,
        before: null,
        after: { delivery_id: id },
      })
      return reads['webhooks.delivery'](organizationId, id)
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
  } satisfies Partial<Statements>
}
