import { Failure } from '../../failure.ts'
import type { Actor } from '../audit-records.ts'
import { auditedEndpoint, changedFields, withoutQuery } from '../audited.ts'
import {
  maxEndpoints,
  type NewWebhookEndpoint,
  type SecretState,
  type WebhookEndpoint,
  type WebhookEndpointChange,
} from '../webhooks.ts'
import { openAudit } from './audit.ts'
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

const secretOfOrganization =
  'SELECT version, previous_until AS previousUntil FROM webhook_secrets WHERE organization_id = ?'
/** The state of a secret that was never rotated, which has no row. */
const firstSecret: SecretState = { version: 1, previousUntil: null }

/** A rotation as the audit log shows it; the end of the previous secret in Unix seconds. */
const rotated = (version: number, previousUntil: number | null): Record<string, unknown> => ({
  secret_version: version,
  previous_valid_until: previousUntil === null ? null : Math.floor(previousUntil / 1000),
})

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

/** A change of an endpoint: whose, by whom, and when. */
interface Act {
  organizationId: string
  id: string
  by: Actor
  at: number
}

/** Writer's commands for webhook endpoints and the secrets of organizations. Each records its act in the audit log. */
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

  const secret = connection.prepare<[string], SecretState>(secretOfOrganization)
  const audit = openAudit(connection)
  const record = (
    act: Act,
    what: string,
    before: Record<string, unknown> | null,
    after: Record<string, unknown> | null,
  ): void =>
    audit({
      organizationId: act.organizationId,
      at: act.at,
      actor: act.by,
      action: `webhook_endpoint.${what}`,
      targetId: act.id,
      before: before && withoutQuery(before),
      after: after && withoutQuery(after),
    })

  function requireOrganization(id: string): void {
    if (!organization.get(id))
      throw new Failure('not_found', `No organization '${id}'. Create it with "infer org create".`)
  }

  return {
    'webhooks.create'({ endpoint: it, by }: { endpoint: NewWebhookEndpoint; by: Actor }): void {
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
      const { organizationId, id, createdAt: at } = it
      record({ organizationId, id, by, at }, 'created', null, auditedEndpoint(endpointOf(one.get(organizationId, id)!)))
      outbox.endpointsChanged()
    },

    /** False: the organization has no such endpoint. */
    'webhooks.update'(it: Act & { change: WebhookEndpointChange }): boolean {
      const row = one.get(it.organizationId, it.id)
      if (!row) return false
      const { name = row.name, url = row.url, eventTypes, enabled = row.enabled === 1 } = it.change
      const types = eventTypes ? JSON.stringify(eventTypes) : row.event_types
      const reason = enabled ? null : row.disabled_reason
      change.run(name, url, types, enabled ? 1 : 0, reason, it.at, it.organizationId, it.id)
      const after = endpointOf(one.get(it.organizationId, it.id)!)
      const changed = changedFields(auditedEndpoint(endpointOf(row)), auditedEndpoint(after))
      if (changed) record(it, 'updated', changed.before, changed.after)
      outbox.endpointsChanged()
      return true
    },

    /** False: the organization has no such endpoint. */
    'webhooks.rotate'(it: Act & { previousUntil: number | null }): boolean {
      const row = one.get(it.organizationId, it.id)
      if (!row) return false
      rotate.run(it.previousUntil, it.at, it.organizationId, it.id)
      const version = row.secret_version
      record(it, 'secret_rotated', { secret_version: version }, rotated(version + 1, it.previousUntil))
      return true
    },

    /** False: the organization has no such endpoint. */
    'webhooks.remove'(it: Act): boolean {
      const row = one.get(it.organizationId, it.id)
      if (!row) return false
      remove.run(it.organizationId, it.id)
      record(it, 'deleted', auditedEndpoint(endpointOf(row)), null)
      outbox.endpointsChanged()
      return true
    },

    /** False: the organization has no such endpoint. */
    'webhooks.recordTest'(it: Act & { type: string }): boolean {
      const row = one.get(it.organizationId, it.id)
      if (row) record(it, 'tested', null, { url: row.url, event_type: it.type })
      return row !== undefined
    },

    'webhooks.rotateSecret'(it: Omit<Act, 'id'> & { previousUntil: number | null }): void {
      requireOrganization(it.organizationId)
      const { version } = secret.get(it.organizationId) ?? firstSecret
      rotateOwn.run({ id: it.organizationId, until: it.previousUntil, at: it.at })
      audit({
        organizationId: it.organizationId,
        at: it.at,
        actor: it.by,
        action: 'organization.webhook_secret_rotated',
        targetId: it.organizationId,
        before: { secret_version: version },
        after: rotated(version + 1, it.previousUntil),
      })
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
  const secret = connection.prepare<[string], SecretState>(secretOfOrganization)
  return {
    find(organizationId: string, id: string): WebhookEndpoint | undefined {
      const row = one.get(organizationId, id)
      return row && endpointOf(row)
    },
    list: (
      organizationId: string,
      { limit, after = null }: { limit: number; after?: string | null | undefined },
    ): WebhookEndpoint[] => page.all({ organizationId, after, limit }).map(endpointOf),
    secretOf: (organizationId: string): SecretState => secret.get(organizationId) ?? firstSecret,
  }
}
