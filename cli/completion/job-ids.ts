import { isOver, JobPage, listPath } from '../jobs/job.ts'
import { lengthText } from '../terminal/quantities-text.ts'
import { askServer, isApplicable, maxOffered } from './ask-server.ts'
import type { CompletionCandidate } from './candidates.ts'

/** Returns ids of the newest jobs that the command applies to. */
export const recentJobs = (dataDirFlag: string | undefined, command = ''): Promise<CompletionCandidate[]> =>
  askServer(dataDirFlag, async (client, signal) => {
    const path = listPath({ limit: maxOffered })
    const { jobs } = await client.ask({ method: 'GET', path, answer: JobPage, signal })
    return jobs
      .filter(({ status }) => isApplicable(command, isOver(status)))
      .map(({ id, status, task, model_id, created_at }) => ({
        value: id,
        description: `${status} ${task} ${model_id}, ${lengthText(Date.now() / 1000 - created_at)} ago`,
      }))
  })
