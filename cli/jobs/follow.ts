import type { Client } from '../client.ts'
import { type Following, followToEnd } from './following.ts'
import { isOver, Job, jobPath } from './job.ts'
import { afterEvent, type Moment, momentOf, unknownMoment } from './moment.ts'

/** Follows a job to its end and resolves with its record, whatever the end is. */
export const followJob = (connect: () => Client, id: string, following: Following<Moment>): Promise<Job> =>
  followToEnd<Job, Moment>(
    connect,
    {
      path: jobPath(id),
      answer: Job,
      before: unknownMoment,
      afterEvent,
      momentOf,
      isOver: ({ status }) => isOver(status),
      givenUp: `The job ${id} has not ended after 30 minutes of asking. It goes on. Follow it again: infer job watch ${id}`,
    },
    following,
  )
