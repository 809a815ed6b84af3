import { isOver, JobPage, listPath } from '../jobs/job.ts'
import { lengthText } from '../quantities-text.ts'
import type { Candidate } from './candidates.ts'
import { fits, known, newest } from './known.ts'

/** Ids of the newest jobs that the command can do something with. */
export const recentJobs = (dataDirFlag: string | undefined, command = ''): Promise<Candidate[]> =>
  known(dataDirFlag, async (client, signal) => {
    const path = listPath({ limit: newest })
    const { jobs } = await client.ask({ method: 'GET', path, answer: JobPage, signal })
    return jobs
      .filter(({ status }) => fits(command, isOver(status)))
      .map(({ id, status, task, model_id, created_at }) => ({
        value: id,
        description: `${status} ${task} ${model_id}, ${lengthText(Date.now() / 1000 - created_at)} ago`,
      }))
  })
