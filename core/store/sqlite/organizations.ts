import { Failure } from '../../failure.ts'
import type { NewOrganization, Organization, OrganizationLimits, OrganizationStatus } from '../store.ts'
import type { Connection } from './database.ts'

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

interface OrganizationRow extends OrganizationLimitsRow {
  id: string
  name: string
  plan: string
  status: OrganizationStatus
  share: number | null
  region: string | null
  created_at: number
  updated_at: number
}

const record = (row: OrganizationRow): Organization => ({
  id: row.id,
  name: row.name,
  plan: row.plan,
  status: row.status,
  share: row.share,
  region: row.region,
  ...organizationLimitsOf(row),
  createdAt: row.created_at,
  updatedAt: row.updated_at,
})

/** The writer's commands for organizations. Each runs inside a savepoint of the writer's transaction. */
export function organizationCommands(connection: Connection) {
  const taken = connection.prepare<[string, string], { id: string }>(
    'SELECT id FROM organizations WHERE id = ? OR name = ?',
  )
  const insert = connection.prepare(
    `INSERT INTO organizations (id, name, plan, status, share, region, created_at, updated_at, ${organizationLimitsColumns})
     VALUES (?, ?, ?, 'active', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
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
      const { id, name, plan, share = null, region = null, createdAt } = it
      insert.run(id, name, plan, share, region, createdAt, createdAt, ...limitValues(it))
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
