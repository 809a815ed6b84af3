import type { Task } from '../schemas/task.ts'
import type { JobRecord, JobStatus } from './job-records.ts'

/** Which jobs and calls to list. */
export interface JobFilter {
  limit: number
  /** Cursor: `next` of the page before, or the id of its last job. */
  after?: string
  status?: JobStatus
  task?: Task
  modelId?: string
  kind?: 'async' | 'sync'
  /** Jobs of this execution. */
  executionId?: string
  /** Jobs of the tokens of this user. */
  userId?: string
  /** Jobs that this token created. */
  tokenId?: string
  /** Epoch milliseconds. */
  createdAfter?: number
  createdBefore?: number
  /** Exact values by name. */
  metadata?: Record<string, string>
  /** Words of the prompt, in any case. Not within an execution. */
  search?: string
}

/** What shows a job to people in a list. */
export interface JobExcerpt extends Pick<JobRecord, 'id'> {
  /** The beginning of what a person wrote; null if the inputs have none, are not kept, or are large. */
  prompt: string | null
  /** The file of a small image of its result; null without one. */
  thumbnailId: string | null
}
