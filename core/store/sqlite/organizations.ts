import { Failure } from '../../failure.ts'
import type { NewOrganization, Organization, Plan } from '../store.ts'
import type { Connection } from './database.ts'

interface OrganizationRow {
  id: string
  name: string
  plan: Plan
  status: 'active' | 'disabled'
  requests_per_minute: number | null
  jobs_per_minute: number | null
  created_at: number
}

const record = (row: OrganizationRow): Organization => ({
  id: row.id,
  name: row.name,
  plan: row.plan,
  status: row.status,
  requestsPerMinute: row.requests_per_minute,
  jobsPerMinute: row.jobs_per_minute,
  createdAt: row.created_at,
})

/** The writer's commands for organizations. Each runs inside a savepoint of the writer's transaction. */
export function organizationCommands(connection: Connection) {
  const taken = connection.prepare<[string, string], { id: string }>(
    'SELECT id FROM organizations WHERE id = ? OR name = ?',
  )
  const insert = connection.prepare(
    `INSERT INTO organizations (id, name, plan, status, requests_per_minute, jobs_per_minute, created_at)
     VALUES (?, ?, ?, 'active', ?, ?, ?)`,
  )
  return {
    'organizations.create'(it: NewOrganization): void {
      const other = taken.get(it.id, it.name)
      if (other)
        throw new Failure(
          'conflict',
          other.id === it.id
            ? `The organization id '${it.id}' is taken. Choose another id.`
            : `An organization named '${it.name}' exists already (${other.id}). Choose another name.`,
        )
      insert.run(it.id, it.name, it.plan, it.requestsPerMinute, it.jobsPerMinute, it.createdAt)
    },
  }
}

/** Reads of organizations; short statements on a read-only connection. */
export function organizationReads(connection: Connection) {
  const all = connection.prepare<[], OrganizationRow>('SELECT * FROM organizations ORDER BY created_at, id')
  const one = connection.prepare<[string], OrganizationRow>('SELECT * FROM organizations WHERE id = ?')
  return {
    list: (): Organization[] => all.all().map(record),
    find(id: string): Organization | undefined {
      const row = one.get(id)
      return row && record(row)
    },
  }
}
