import { Failure } from '../../failure.ts'
import { auditedOrganization, changedFields } from '../audit-fields.ts'
import type { Statements } from '../method-table.ts'
import {
  machineOwnerName,
  type Organization,
  type OrganizationLimits,
  type OrganizationStatus,
  theServer,
} from '../store.ts'
import { openAudit } from './audit.ts'
import { type Connection, scalar } from './database.ts'

/** The columns of the limits of an organization. */
export interface OrganizationLimitsRow {
  requests_per_minute: number | null
  jobs_per_minute: number | null
  concurrent_requests: number | null
  pending_jobs: number | null
  stored_bytes: number | null
  uploads_per_day: number | null
  monthly_spend_limit: number | null
}
export const organizationLimitsColumns =
  'requests_per_minute, jobs_per_minute, concurrent_requests, pending_jobs, stored_bytes, uploads_per_day, monthly_spend_limit'

export const organizationLimitsOf = (row: OrganizationLimitsRow): OrganizationLimits => ({
  requestsPerMinute: row.requests_per_minute,
  jobsPerMinute: row.jobs_per_minute,
  concurrentRequests: row.concurrent_requests,
  pendingJobs: row.pending_jobs,
  storedBytes: row.stored_bytes,
  uploadsPerDay: row.uploads_per_day,
  monthlySpendLimit: row.monthly_spend_limit,
})

const limitValues = (limits: Partial<OrganizationLimits>): (number | null)[] => [
  limits.requestsPerMinute ?? null,
  limits.jobsPerMinute ?? null,
  limits.concurrentRequests ?? null,
  limits.pendingJobs ?? null,
  limits.storedBytes ?? null,
  limits.uploadsPerDay ?? null,
  limits.monthlySpendLimit ?? null,
]

export interface OrganizationRow extends OrganizationLimitsRow {
  id: string
  name: string
  plan: string
  status: OrganizationStatus
  share: number | null
  region: string | null
  created_at: number
  updated_at: number
  deleted_name: string | null
}

const organizationOf = (row: OrganizationRow): Organization => ({
  id: row.id,
  name: row.deleted_name ?? row.name,
  plan: row.plan,
  status: row.status,
  share: row.share,
  region: row.region,
  ...organizationLimitsOf(row),
  createdAt: row.created_at,
  updatedAt: row.updated_at,
})

/** Throws Failure `conflict` for an organization that was deleted: nothing of it changes any more. */
export function refuseDeleted({ status, deleted_name }: OrganizationRow): void {
  if (status === 'deleted') throw new Failure('conflict', `The organization '${deleted_name}' was deleted.`)
}

/** Throws Failure `conflict` for the organization that owns the machine, without which nobody could administer it. */
export function refuseMachineOwner({ name }: OrganizationRow, act: string): void {
  if (name !== machineOwnerName) return
  throw new Failure('conflict', `The organization '${name}' owns this machine. It cannot be ${act}.`)
}

/** The writer's commands for organizations. Each runs inside a savepoint of the writer's transaction. */
export function organizationCommands(connection: Connection) {
  const taken = connection.prepare<[string, string], { id: string }>(
    'SELECT id FROM organizations WHERE id = ? OR name = ?',
  )
  const one = connection.prepare<[string], OrganizationRow>('SELECT * FROM organizations WHERE id = ?')
  const insert = connection.prepare(
    `INSERT INTO organizations (id, name, plan, status, share, region, created_at, updated_at, ${organizationLimitsColumns})
     VALUES (?, ?, ?, 'active', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  )
  const change = connection.prepare(
    `UPDATE organizations SET name = ?, plan = ?, share = ?, region = ?, updated_at = ?, requests_per_minute = ?,
       jobs_per_minute = ?, concurrent_requests = ?, pending_jobs = ?, stored_bytes = ?, uploads_per_day = ?,
       monthly_spend_limit = ? WHERE id = ?`,
  )
  const setStatus = connection.prepare('UPDATE organizations SET status = ?, updated_at = ? WHERE id = ?')
  const audit = openAudit(connection)

  function refuseTaken({ id, name }: { id: string; name: string }): void {
    const other = taken.get(id, name)
    if (other)
      throw new Failure(
        'conflict',
        other.id === id
          ? `The organization id '${id}' is taken. Choose another id.`
          : `An organization named '${name}' exists already (${other.id}). Choose another name.`,
        { param: 'name' },
      )
  }

  return {
    'organizations.create'(it, by = theServer) {
      refuseTaken(it)
      const { id, name, plan, share = null, region = null, createdAt } = it
      insert.run(id, name, plan, share, region, createdAt, createdAt, ...limitValues(it))
      const created = organizationOf(one.get(id)!)
      audit({
        organizationId: id,
        at: createdAt,
        actor: by,
        action: 'organization.created',
        targetId: id,
        before: null,
        after: auditedOrganization(created),
      })
      return created
    },

    'organizations.update'(id, changes, by, at) {
      const row = one.get(id)
      if (!row) return undefined
      refuseDeleted(row)
      const before = organizationOf(row)
      const after = { ...before, ...changes }
      if (after.name !== before.name) {
        refuseMachineOwner(row, 'renamed')
        refuseTaken({ id: '', name: after.name })
      }
      const changed = changedFields(auditedOrganization(before), auditedOrganization(after))
      if (!changed) return before
      change.run(after.name, after.plan, after.share, after.region, at, ...limitValues(after), id)
      const target = { organizationId: id, at, actor: by, targetId: id }
      audit({ ...target, action: 'organization.updated', ...changed })
      return { ...after, updatedAt: at }
    },

    'organizations.setStatus'(id, status, by, at) {
      const row = one.get(id)
      if (!row) return undefined
      refuseDeleted(row)
      if (status === 'suspended') refuseMachineOwner(row, 'suspended')
      if (row.status === status) return organizationOf(row)
      setStatus.run(status, at, id)
      const action = status === 'suspended' ? 'organization.suspended' : 'organization.resumed'
      const [before, after] = [{ status: row.status }, { status }]
      audit({ organizationId: id, at, actor: by, targetId: id, action, before, after })
      return organizationOf({ ...row, status, updated_at: at })
    },
  } satisfies Partial<Statements>
}

/** Reads of organizations; short statements on a read-only connection. */
export function organizationReads(connection: Connection) {
  const all = connection.prepare<[], OrganizationRow>('SELECT * FROM organizations ORDER BY created_at, id')
  const one = connection.prepare<[string], OrganizationRow>('SELECT * FROM organizations WHERE id = ?')
  const suspended = scalar<[], string>(connection, `SELECT id FROM organizations WHERE status = 'suspended'`)
  const unerased = scalar<[], string>(
    connection,
    `SELECT id FROM organizations WHERE status = 'deleted' AND erased_at IS NULL`,
  )
  return {
    'organizations.list': () => all.all().map(organizationOf),
    'organizations.find'(id) {
      const row = one.get(id)
      return row && organizationOf(row)
    },
    'organizations.suspended': () => suspended.all(),
    'organizations.unerased': () => unerased.all(),
  } satisfies Partial<Statements>
}
