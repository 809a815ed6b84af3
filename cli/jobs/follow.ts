import type { Client } from '../client/client.ts'
import { type FollowOptions, followToEnd } from './follow-to-end.ts'
import { isOver, Job, jobPath } from './job.ts'
import { afterEvent, type JobSnapshot, jobSnapshot, unknownSnapshot } from './job-snapshot.ts'

/** Follows a job until it ends in any state, and resolves with its record. */
export const followJob = (connect: () => Client, id: string, following: FollowOptions<JobSnapshot>): Promise<Job> =>
  followToEnd<Job, JobSnapshot>(
    connect,
    {
      path: jobPath(id),
      answer: Job,
      before: unknownSnapshot,
      afterEvent,
      snapshotOf: jobSnapshot,
      isOver: ({ status }) => isOver(status),
      timeoutMessage: `The job ${id} has not ended after 30 minutes of polling and is still running. Follow it again: infer job watch ${id}`,
    },
    following,
  )
