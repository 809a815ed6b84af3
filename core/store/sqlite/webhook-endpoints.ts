import { conflict, Failure } from '../../failure.ts'
import { auditedEndpoint, changedFields } from '../audit-fields.ts'
import { theServer } from '../audit-records.ts'
import type { Statements } from '../method-table.ts'
import { maxEndpoints, type SecretState, type WebhookEndpoint } from '../webhooks.ts'
import { fromJson, openInsert, openUpdate, type RowOf, recordIf, selected, withChanges } from './columns.ts'
import type { Connection } from './database.ts'
import type { WriteContext } from './write-context.ts'

const changingFields = 'name, url, eventTypes, enabled, disabledReason, updatedAt'
const fields = `organizationId, id, origin, secretVersion, createdAt, ${changingFields}`
const select = `SELECT ${selected(`${fields}, previousUntil`)} FROM webhook_endpoints`

interface EndpointRow extends RowOf<Omit<WebhookEndpoint, 'enabled' | 'secret'>, 'eventTypes'> {
  enabled: number
  secretVersion: number
  previousUntil: number | null
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

const endpointOf = ({ secretVersion: version, previousUntil, ...row }: EndpointRow): WebhookEndpoint => ({
  ...row,
  eventTypes: fromJson(row.eventTypes),
  enabled: row.enabled === 1,
  secret: { version, previousUntil },
})

/** Writer's commands for webhook endpoints and the secrets of organizations. Each records its act in the audit log. */
export function webhookEndpointCommands(connection: Connection, { audit, outbox }: WriteContext) {
  const organization = connection.statement`SELECT 1 FROM organizations WHERE id = ?`
  const count = connection.scalar<number>`SELECT count(*) FROM webhook_endpoints WHERE organization_id = ?`
  const one = connection.query<EndpointRow>`${select} WHERE organization_id = ? AND id = ?`
  const insert = openInsert(connection, 'webhook_endpoints', fields)
  const change = openUpdate(connection, 'webhook_endpoints', changingFields)
  const rotate = connection.statement`UPDATE webhook_endpoints
    SET secret_version = secret_version + 1, previous_until = ?, updated_at = ? WHERE organization_id = ? AND id = ?`
  const remove = connection.statement`DELETE FROM webhook_endpoints WHERE organization_id = ? AND id = ?`
  const rotateOwn = connection.statement`INSERT INTO webhook_secrets (organization_id, version, previous_until,
    updated_at) VALUES (:id, 2, :until, :at) ON CONFLICT (organization_id) DO UPDATE
    SET version = version + 1, previous_until = :until, updated_at = :at`

  const secret = connection.query<SecretState>`${secretOfOrganization}`
  function requireOrganization(id: string): void {
    if (!organization.get(id))
      throw new Failure('not_found', `No organization '${id}'. Create it with "infer org create".`)
  }

  return {
    'webhooks.create'(it, by = theServer) {
      requireOrganization(it.organizationId)
      if (count.get(it.organizationId)! >= maxEndpoints)
        throw conflict(
          `The organization has ${maxEndpoints} webhook endpoints, the most that it may have. Delete one first.`,
        )
      const { organizationId, id, createdAt: at } = it
      insert({ ...it, secretVersion: 1, updatedAt: at })
      const created = endpointOf(one.get(organizationId, id)!)
      audit({ organizationId, id, at, by, action: 'webhook_endpoint.created', after: auditedEndpoint(created) })
      outbox.endpointsChanged()
      return created
    },

    'webhooks.update'(organizationId, id, changes, at, by = theServer) {
      const row = one.get(organizationId, id)
      if (!row) return undefined
      const { enabled = row.enabled === 1 } = changes
      change({ ...withChanges(row, changes), disabledReason: enabled ? null : row.disabledReason, updatedAt: at })
      const after = endpointOf(one.get(organizationId, id)!)
      const changed = changedFields(auditedEndpoint(endpointOf(row)), auditedEndpoint(after))
      if (changed) audit({ organizationId, id, at, by, action: 'webhook_endpoint.updated', ...changed })
      outbox.endpointsChanged()
      return after
    },

    'webhooks.rotate'(organizationId, id, previousUntil, at, by = theServer) {
      const row = one.get(organizationId, id)
      if (!row) return undefined
      rotate.run(previousUntil, at, organizationId, id)
      const version = row.secretVersion
      const [before, after] = [{ secret_version: version }, rotated(version + 1, previousUntil)]
      const action = 'webhook_endpoint.secret_rotated'
      audit({ organizationId, id, at, by, action, before, after })
      return endpointOf(one.get(organizationId, id)!)
    },

    'webhooks.remove'(organizationId, id, at, by = theServer) {
      const row = one.get(organizationId, id)
      if (!row) return undefined
      remove.run(organizationId, id)
      const before = auditedEndpoint(endpointOf(row))
      audit({ organizationId, id, at, by, action: 'webhook_endpoint.deleted', before })
      outbox.endpointsChanged()
      return true
    },

    'webhooks.recordTest'(organizationId, id, type, at, by = theServer) {
      const row = one.get(organizationId, id)
      const after = row && { url: row.url, event_type: type }
      if (after) audit({ organizationId, id, at, by, action: 'webhook_endpoint.tested', after })
      return after !== undefined
    },

    'webhooks.rotateSecret'(organizationId, previousUntil, at, by = theServer) {
      requireOrganization(organizationId)
      const { version } = secret.get(organizationId) ?? firstSecret
      rotateOwn.run({ id: organizationId, until: previousUntil, at })
      const [before, after] = [{ secret_version: version }, rotated(version + 1, previousUntil)]
      const action = 'organization.webhook_secret_rotated'
      audit({ organizationId, id: organizationId, at, by, action, before, after })
      return { version: version + 1, previousUntil }
    },
  } satisfies Statements
}

/** Reads of webhook endpoints; short statements on a read-only connection. */
export function webhookEndpointReads(connection: Connection) {
  const one = connection.query<EndpointRow>`${select} WHERE organization_id = ? AND id = ?`
  const page = connection.query<EndpointRow>`${select} WHERE organization_id = :organizationId
    AND (:after IS NULL OR id < :after) ORDER BY id DESC LIMIT :limit`
  const secret = connection.query<SecretState>`${secretOfOrganization}`
  return {
    'webhooks.find': (organizationId, id) => recordIf(one.get(organizationId, id), endpointOf),
    'webhooks.list': (organizationId, { limit, after = null }) =>
      page.all({ organizationId, after, limit }).map(endpointOf),
    'webhooks.secretOf': organizationId => secret.get(organizationId) ?? firstSecret,
  } satisfies Statements
}
