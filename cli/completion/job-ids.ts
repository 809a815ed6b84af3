import { dataDirectory } from '../../core/config.ts'
import { openClient } from '../client.ts'
import { isOver, JobPage, listPath } from '../jobs/job.ts'
import { lengthText } from '../quantities-text.ts'
import type { Candidate } from './candidates.ts'

const patienceMs = 700
const newest = 20

/** Which jobs a command is for, where it is not for all. */
const fitting: Record<string, (over: boolean) => boolean> = {
  cancel: over => !over,
  watch: over => !over,
  retry: over => over,
  delete: over => over,
}

/** Ids of the newest jobs that the command can do something with. Never throws; nothing known is an empty list. */
export async function recentJobs(dataDirFlag: string | undefined, command = ''): Promise<Candidate[]> {
  try {
    const signal = AbortSignal.timeout(patienceMs)
    const path = listPath({ limit: newest })
    const { jobs } = await openClient(dataDirectory(dataDirFlag)).ask({ method: 'GET', path, answer: JobPage, signal })
    return jobs
      .filter(({ status }) => fitting[command]?.(isOver(status)) ?? true)
      .map(({ id, status, task, model_id, created_at }) => ({
        value: id,
        description: `${status} ${task} ${model_id}, ${lengthText(Date.now() / 1000 - created_at)} ago`,
      }))
  } catch {
    return []
  }
}
