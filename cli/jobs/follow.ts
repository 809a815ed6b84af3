import type { Client } from '../client/client.ts'
import type { SseEvent } from '../client/http.ts'
import { eventData, type FollowOptions, followToEnd } from './follow-to-end.ts'
import { isOver, type Job, type JobSummary } from './job.ts'

/** Follows a job until it ends in any state, and resolves with its record. */
export const followJob = (connect: () => Client, id: string, following: FollowOptions<JobSnapshot>): Promise<Job> =>
  followToEnd<Job, JobSnapshot>(
    connect,
    {
      path: `/api/jobs/${id}`,
      read: ({ api }, signal) => api.GET('/api/jobs/{id}', { params: { path: { id } }, signal }),
      before: unknownSnapshot,
      afterEvent,
      snapshotOf: job => ({ ...jobSnapshot(job), status: job.status }),
      isOver: ({ status }) => isOver(status),
      timeoutMessage: `The job ${id} has not ended after 30 minutes of polling and is still running. Follow it again: infer job watch ${id}`,
    },
    following,
  )

/** The state of a job at one time, as it is drawn. */
export interface JobSnapshot {
  status: string
  /** 0 to 1; null while unknown. */
  progress: number | null
  /** Number of jobs ahead of it in the queue; null once it runs. */
  queuePosition: number | null
  etaSeconds: number | null
  waitingFor: { reason: string; detail: string } | null
}

export const unknownSnapshot: JobSnapshot = {
  status: 'pending',
  progress: null,
  queuePosition: null,
  etaSeconds: null,
  waitingFor: null,
}

/** What an event tells of a job. A missing field leaves its value unchanged. */
type JobFacts = Partial<Pick<JobSummary, 'status' | 'progress' | 'queue_position' | 'eta_seconds' | 'waiting_for'>>

export const jobSnapshot = (job: JobFacts): JobSnapshot => withFacts(unknownSnapshot, job.status, job)

const withFacts = (
  before: JobSnapshot,
  status: string = before.status,
  { progress, queue_position, eta_seconds, waiting_for }: JobFacts,
): JobSnapshot => ({
  status,
  progress: progress === undefined ? before.progress : progress,
  queuePosition: queue_position === undefined ? before.queuePosition : queue_position,
  etaSeconds: eta_seconds === undefined ? before.etaSeconds : eta_seconds,
  waitingFor: waiting_for === undefined ? before.waitingFor : waiting_for,
})

/** The status of a job after each event. */
const statusAfter: Record<string, string> = {
  'job.created': 'pending',
  'job.started': 'processing',
  'job.retrying': 'pending',
  'job.waiting': 'pending',
  'job.completed': 'completed',
  'job.failed': 'failed',
  'job.cancelled': 'cancelled',
}

/**
 * Returns the snapshot after an event; undefined for an unknown event, which a newer server may send and which is
 * ignored.
 */
function afterEvent(before: JobSnapshot, event: SseEvent): JobSnapshot | undefined {
  // The first event contains the whole job.
  const told: (JobFacts & { job?: JobFacts }) | undefined = eventData(event)
  if (!told) return undefined
  const facts = told.job ?? told
  const status = facts.status ?? statusAfter[event.event] ?? before.status
  // Progress, position and reason belong to the previous status.
  return withFacts(status === before.status ? before : unknownSnapshot, status, facts)
}
