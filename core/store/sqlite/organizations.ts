import { conflict, invalid } from '../../failure.ts'
import { auditedOrganization, changedFields } from '../audit-fields.ts'
import type { Statements } from '../method-table.ts'
import { machineOwnerName, type Organization, type OrganizationLimits, theServer } from '../store.ts'
import { openInsert, openUpdate, recordIf, selected } from './columns.ts'
import type { Connection } from './database.ts'
import type { WriteContext } from './write-context.ts'

export const organizationLimitFields =
  'requestsPerMinute, jobsPerMinute, concurrentRequests, pendingJobs, storedBytes, uploadsPerDay, monthlySpendLimit, localOnly'
const changingFields = `plan, share, region, callStorage, updatedAt, ${organizationLimitFields}`

/** The row of a deleted organization has its id as its name, so that others may take the name. */
const select = `SELECT id, coalesce(deleted_name, name) AS name, status, ${selected(`createdAt, ${changingFields}`)}
  FROM organizations`

/** The limits of an organization as a row has them. */
export type OrganizationLimitsRow = Omit<OrganizationLimits, 'localOnly'> & { localOnly: number | null }
type OrganizationRow = Omit<Organization, 'localOnly'> & OrganizationLimitsRow

/** The row with the truth value that it has as a number. */
export const withLocalOnly = <Row extends OrganizationLimitsRow>(row: Row) => ({
  ...row,
  localOnly: row.localOnly === null ? null : row.localOnly === 1,
})

/** Looks up an organization by its id. */
export function openOrganizationRows(connection: Connection) {
  const find = connection.query<OrganizationRow>`${select} WHERE id = ?`
  return (id: string): Organization | undefined => recordIf(find.get(id), withLocalOnly)
}

/** Throws Failure `conflict` for an organization that was deleted: nothing of it changes any more. */
export function refuseDeleted({ status, name }: Organization): void {
  if (status === 'deleted') throw conflict(`The organization '${name}' was deleted.`)
}

/** Throws Failure `conflict` for the organization that owns the machine, without which nobody could administer it. */
export function refuseMachineOwner({ name }: Organization, act: string): void {
  if (name !== machineOwnerName) return
  throw conflict(`The organization '${name}' owns this machine. It cannot be ${act}.`)
}

/** The writer's commands for organizations. Each runs inside a savepoint of the writer's transaction. */
export function organizationCommands(connection: Connection, { audit }: WriteContext) {
  const taken = connection.query<{ id: string }>`SELECT id FROM organizations WHERE id = ? OR name = ?`
  const one = openOrganizationRows(connection)
  const insert = openInsert(connection, 'organizations', `id, name, status, createdAt, ${changingFields}`)
  const change = openUpdate(connection, 'organizations', `name, ${changingFields}`, 'id')
  const setStatus = connection.statement`UPDATE organizations SET status = ?, updated_at = ? WHERE id = ?`

  function refuseTaken({ id, name }: { id: string; name: string }): void {
    const other = taken.get(id, name)
    if (other)
      throw invalid(
        'name',
        other.id === id
          ? `The organization id '${id}' is taken. Choose another id.`
          : `An organization named '${name}' exists already (${other.id}). Choose another name.`,
        'conflict',
      )
  }

  return {
    'organizations.create'(it, by = theServer) {
      refuseTaken(it)
      const { id, createdAt } = it
      insert({ callStorage: 'metadata', ...it, status: 'active', updatedAt: createdAt })
      const created = one(id)!
      const after = auditedOrganization(created)
      audit({ organizationId: id, id, at: createdAt, by, action: 'organization.created', after })
      return created
    },

    'organizations.update'(id, changes, by, at) {
      const before = one(id)
      if (!before) return undefined
      refuseDeleted(before)
      const after = { ...before, ...changes, updatedAt: at }
      if (after.name !== before.name) {
        refuseMachineOwner(before, 'renamed')
        refuseTaken({ id: '', name: after.name })
      }
      const changed = changedFields(auditedOrganization(before), auditedOrganization(after))
      if (!changed) return before
      change(after)
      audit({ organizationId: id, id, at, by, action: 'organization.updated', ...changed })
      return after
    },

    'organizations.setStatus'(id, status, by, at) {
      const row = one(id)
      if (!row) return undefined
      refuseDeleted(row)
      if (status === 'suspended') refuseMachineOwner(row, 'suspended')
      if (row.status === status) return row
      setStatus.run(status, at, id)
      const action = status === 'suspended' ? 'organization.suspended' : 'organization.resumed'
      const [before, after] = [{ status: row.status }, { status }]
      audit({ organizationId: id, id, at, by, action, before, after })
      return { ...row, status, updatedAt: at }
    },
  } satisfies Statements
}

/** Reads of organizations; short statements on a read-only connection. */
export function organizationReads(connection: Connection) {
  const all = connection.query<OrganizationRow>`${select} ORDER BY created_at, id`
  const one = openOrganizationRows(connection)
  const suspended = connection.scalar<string>`SELECT id FROM organizations WHERE status = 'suspended'`
  const unerased = connection.scalar<string>`SELECT id FROM organizations WHERE status = 'deleted'
    AND erased_at IS NULL`
  return {
    'organizations.list': () => all.all().map(withLocalOnly),
    'organizations.find': id => one(id),
    'organizations.suspended': () => suspended.all(),
    'organizations.unerased': () => unerased.all(),
  } satisfies Statements
}
