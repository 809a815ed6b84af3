import type { Statements } from '../method-table.ts'
import type {
  DeliveryRecord,
  DeliveryStatus,
  DeliverySubject,
  DeliveryTarget,
  DueDelivery,
  NewDelivery,
} from '../webhooks.ts'
import type { Connection } from './database.ts'

interface RecordRow extends Omit<DeliveryRecord, 'status'> {
  status: DeliveryStatus | 'new'
}

/** Reads of deliveries; short statements on a read-only connection. */
export function webhookDeliveryReads(connection: Connection) {
  const withoutBody = connection.prepare<[number], Omit<NewDelivery, 'subject'> & { subject: string }>(
    `SELECT number, id, organization_id AS organizationId, endpoint_id AS endpointId, form, origin, event, type, at, subject
     FROM webhook_deliveries WHERE status = 'new' ORDER BY number LIMIT ?`,
  )
  const first = `SELECT target FROM webhook_deliveries WHERE status = 'pending' AND waits = 0 AND target >`
  // Jumps from one target to the next in the index, however many deliveries each has.
  const targets = connection.prepare<[string, number], DeliveryTarget>(
    `WITH RECURSIVE found (target) AS (
       SELECT (${first} ? ORDER BY target LIMIT 1)
       UNION ALL
       SELECT (${first} found.target ORDER BY target LIMIT 1) FROM found WHERE found.target IS NOT NULL)
     SELECT found.target, (SELECT next_at FROM webhook_deliveries AS d
         WHERE d.status = 'pending' AND d.waits = 0 AND d.target = found.target ORDER BY next_at LIMIT 1) AS nextAt,
       CASE WHEN o.id IS NULL THEN 'removed' WHEN o.status = 'active' AND e.enabled IS NOT 0 THEN 'open' ELSE 'held' END AS state
     FROM found LEFT JOIN webhook_endpoints AS e ON e.id = found.target
     LEFT JOIN organizations AS o ON o.id = coalesce(e.organization_id, substr(found.target, 1, instr(found.target, ' ') - 1))
     WHERE found.target IS NOT NULL LIMIT ?`,
  )
  const due = connection.prepare<
    [string, number, number],
    Omit<DueDelivery, 'secret'> & { version: number; previousUntil: number | null }
  >(
    `SELECT d.number, d.id, d.organization_id AS organizationId, d.endpoint_id AS endpointId, coalesce(e.url, d.url) AS url,
       d.form, d.type, d.object, d.attempts, body, coalesce(e.secret_version, s.version, 1) AS version,
       CASE WHEN e.id IS NULL THEN s.previous_until ELSE e.previous_until END AS previousUntil
     FROM webhook_deliveries AS d JOIN webhook_bodies USING (number)
     LEFT JOIN webhook_endpoints AS e ON e.id = d.endpoint_id
     LEFT JOIN webhook_secrets AS s ON s.organization_id = d.organization_id
     WHERE d.status = 'pending' AND d.waits = 0 AND d.target = ? AND d.next_at <= ?
     ORDER BY d.next_at, d.number LIMIT ?`,
  )
  const columns = `d.id, d.organization_id AS organizationId, d.endpoint_id AS endpointId, coalesce(e.url, d.url) AS url,
    d.event, d.type, d.status, d.attempts, CASE WHEN d.finished_at IS NULL THEN d.next_at END AS nextAt, d.at AS createdAt,
    d.attempted_at AS attemptedAt, d.finished_at AS finishedAt, d.status_code AS statusCode, d.duration_ms AS durationMs,
    d.error, body AS requestBody, d.response_body AS responseBody
    FROM webhook_deliveries AS d LEFT JOIN webhook_bodies USING (number)
    LEFT JOIN webhook_endpoints AS e ON e.id = d.endpoint_id`
  const one = connection.prepare<[string, string], RecordRow>(
    `SELECT ${columns} WHERE d.organization_id = ? AND d.id = ? AND (d.endpoint_id IS NULL OR e.id IS NOT NULL)`,
  )
  const numberOf = connection
    .prepare<[string, string], number>('SELECT number FROM webhook_deliveries WHERE organization_id = ? AND id = ?')
    .pluck()
  const page = (where: string) =>
    connection.prepare<[Record<string, string | number | null>], RecordRow>(
      `SELECT ${columns} WHERE d.organization_id = :organizationId AND d.number < :before ${where}
         AND (d.endpoint_id IS NULL OR e.id IS NOT NULL) ORDER BY d.number DESC LIMIT :limit`,
    )
  // The planner uses a partial index only for a condition that is in the text.
  const conditions = {
    pending: 'd.finished_at IS NULL',
    delivered: "d.status = 'delivered'",
    dead: "d.status = 'dead'",
  }
  const pagesOf = (where: string) => ({
    all: page(where),
    pending: page(`${where} AND ${conditions.pending}`),
    delivered: page(`${where} AND ${conditions.delivered}`),
    dead: page(`${where} AND ${conditions.dead}`),
  })
  const ofOrganization = pagesOf('')
  const ofEndpoint = pagesOf('AND d.endpoint_id = :endpointId')
  const unfinished = connection
    .prepare<[number], number>(
      'SELECT count(*) FROM (SELECT 1 FROM webhook_deliveries WHERE finished_at IS NULL LIMIT ?)',
    )
    .pluck()
  const dead = connection
    .prepare<[number], number>(`SELECT count(*) FROM (SELECT 1 FROM webhook_deliveries WHERE status = 'dead' LIMIT ?)`)
    .pluck()

  const recordOf = (row: RecordRow): DeliveryRecord => ({
    ...row,
    status: row.status === 'new' ? 'pending' : row.status,
  })

  return {
    'webhooks.withoutBody': limit =>
      withoutBody.all(limit).map(row => ({ ...row, subject: JSON.parse(row.subject) as DeliverySubject })),
    'webhooks.targets': (after, limit) => targets.all(after, limit),
    'webhooks.due': (target, now, limit) =>
      due
        .all(target, now, limit)
        .map(({ version, previousUntil, ...row }) => ({ ...row, secret: { version, previousUntil } })),
    'webhooks.delivery'(organizationId, id) {
      const row = one.get(organizationId, id)
      return row && recordOf(row)
    },
    'webhooks.deliveries'(organizationId, filter) {
      const { limit, after, endpointId, status = 'all' } = filter
      const before = after === undefined ? Number.MAX_SAFE_INTEGER : (numberOf.get(organizationId, after) ?? 0)
      const pages = endpointId === undefined ? ofOrganization : ofEndpoint
      const query = { organizationId, limit, before, ...(endpointId === undefined ? {} : { endpointId }) }
      return pages[status].all(query).map(recordOf)
    },
    'webhooks.counts': limit => ({
      pending: unfinished.get(limit)!,
      dead: dead.get(limit)!,
    }),
  } satisfies Partial<Statements>
}
