import { Failure } from '../../failure.ts'
import {
  maxEndpoints,
  type NewWebhookEndpoint,
  type SecretState,
  type WebhookEndpoint,
  type WebhookEndpointChange,
} from '../webhooks.ts'
import type { Connection } from './database.ts'
import type { WebhookOutbox } from './webhook-outbox.ts'

interface EndpointRow {
  organization_id: string
  id: string
  name: string
  url: string
  event_types: string
  enabled: number
  disabled_reason: 'gone' | null
  origin: string | null
  secret_version: number
  previous_until: number | null
  created_at: number
  updated_at: number
}

const endpointOf = (row: EndpointRow): WebhookEndpoint => ({
  id: row.id,
  organizationId: row.organization_id,
  name: row.name,
  url: row.url,
  eventTypes: JSON.parse(row.event_types) as string[],
  enabled: row.enabled === 1,
  disabledReason: row.disabled_reason,
  origin: row.origin,
  secret: { version: row.secret_version, previousUntil: row.previous_until },
  createdAt: row.created_at,
  updatedAt: row.updated_at,
})

/** The writer's commands for webhook endpoints and the secrets of organizations. */
export function webhookEndpointCommands(
  connection: Connection,
  { outbox }: { outbox: Pick<WebhookOutbox, 'endpointsChanged'> },
) {
  const organization = connection.prepare('SELECT 1 FROM organizations WHERE id = ?')
  const count = connection
    .prepare<[string], number>('SELECT count(*) FROM webhook_endpoints WHERE organization_id = ?')
    .pluck()
  const one = connection.prepare<[string, string], EndpointRow>(
    'SELECT * FROM webhook_endpoints WHERE organization_id = ? AND id = ?',
  )
  const insert = connection.prepare(
    `INSERT INTO webhook_endpoints (organization_id, id, name, url, event_types, enabled, origin, secret_version,
       created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, 1, ?, ?)`,
  )
  const change = connection.prepare(
    `UPDATE webhook_endpoints SET name = ?, url = ?, event_types = ?, enabled = ?, disabled_reason = ?, updated_at = ?
     WHERE organization_id = ? AND id = ?`,
  )
  const rotate = connection.prepare(
    `UPDATE webhook_endpoints SET secret_version = secret_version + 1, previous_until = ?, updated_at = ?
     WHERE organization_id = ? AND id = ?`,
  )
  const remove = connection.prepare('DELETE FROM webhook_endpoints WHERE organization_id = ? AND id = ?')
  const rotateOwn = connection.prepare(
    `INSERT INTO webhook_secrets (organization_id, version, previous_until, updated_at) VALUES (:id, 2, :until, :at)
     ON CONFLICT (organization_id) DO UPDATE SET version = version + 1, previous_until = :until, updated_at = :at`,
  )

  function requireOrganization(id: string): void {
    if (!organization.get(id))
      throw new Failure('not_found', `No organization '${id}'. Create it with "infer org create".`)
  }

  return {
    'webhooks.create'(it: NewWebhookEndpoint): void {
      requireOrganization(it.organizationId)
      if (count.get(it.organizationId)! >= maxEndpoints)
        throw new Failure(
          'conflict',
          `The organization has ${maxEndpoints} webhook endpoints, the most that it may have. Delete one first.`,
        )
      insert.run(
        it.organizationId,
        it.id,
        it.name,
        it.url,
        JSON.stringify(it.eventTypes),
        it.enabled ? 1 : 0,
        it.origin,
        it.createdAt,
        it.createdAt,
      )
      outbox.endpointsChanged()
    },

    /** False: the organization has no such endpoint. */
    'webhooks.update'(it: { organizationId: string; id: string; change: WebhookEndpointChange; at: number }): boolean {
      const row = one.get(it.organizationId, it.id)
      if (!row) return false
      const { name = row.name, url = row.url, eventTypes, enabled = row.enabled === 1 } = it.change
      const types = eventTypes ? JSON.stringify(eventTypes) : row.event_types
      const reason = enabled ? null : row.disabled_reason
      change.run(name, url, types, enabled ? 1 : 0, reason, it.at, it.organizationId, it.id)
      outbox.endpointsChanged()
      return true
    },

    /** False: the organization has no such endpoint. */
    'webhooks.rotate'(it: { organizationId: string; id: string; previousUntil: number | null; at: number }): boolean {
      return rotate.run(it.previousUntil, it.at, it.organizationId, it.id).changes === 1
    },

    /** False: the organization has no such endpoint. */
    'webhooks.remove'({ organizationId, id }: { organizationId: string; id: string }): boolean {
      outbox.endpointsChanged()
      return remove.run(organizationId, id).changes === 1
    },

    'webhooks.rotateSecret'(it: { organizationId: string; previousUntil: number | null; at: number }): void {
      requireOrganization(it.organizationId)
      rotateOwn.run({ id: it.organizationId, until: it.previousUntil, at: it.at })
    },
  }
}

/** Reads of webhook endpoints; short statements on a read-only connection. */
export function webhookEndpointReads(connection: Connection) {
  const one = connection.prepare<[string, string], EndpointRow>(
    'SELECT * FROM webhook_endpoints WHERE organization_id = ? AND id = ?',
  )
  const page = connection.prepare<[{ organizationId: string; after: string | null; limit: number }], EndpointRow>(
    `SELECT * FROM webhook_endpoints WHERE organization_id = :organizationId AND (:after IS NULL OR id < :after)
     ORDER BY id DESC LIMIT :limit`,
  )
  const secret = connection.prepare<[string], SecretState>(
    'SELECT version, previous_until AS previousUntil FROM webhook_secrets WHERE organization_id = ?',
  )
  return {
    find(organizationId: string, id: string): WebhookEndpoint | undefined {
      const row = one.get(organizationId, id)
      return row && endpointOf(row)
    },
    list: (
      organizationId: string,
      { limit, after = null }: { limit: number; after?: string | null | undefined },
    ): WebhookEndpoint[] => page.all({ organizationId, after, limit }).map(endpointOf),
    secretOf: (organizationId: string): SecretState =>
      secret.get(organizationId) ?? { version: 1, previousUntil: null },
  }
}
