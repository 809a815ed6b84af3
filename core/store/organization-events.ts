import { batchEventTypes } from './batch-records.ts'
import type { ExecutionEvent } from './workflows.ts'

/** The types of events that belong to an organization, and to none of its jobs and executions. */
export const organizationEventTypes = [
  'quota.warning',
  'quota.exceeded',
  'token.created',
  'token.revoked',
  ...batchEventTypes,
] as const
export type OrganizationEventType = (typeof organizationEventTypes)[number]

/** Any event of an organization: of a job, of an execution, or of the organization itself. */
export interface OrganizationEvent extends Omit<ExecutionEvent, 'executionId' | 'type'> {
  type: ExecutionEvent['type'] | OrganizationEventType
  executionId: string | null
  /** JSON text of an object that describes an event of the organization itself; of others as in a JobEvent. */
  data: string | null
}
