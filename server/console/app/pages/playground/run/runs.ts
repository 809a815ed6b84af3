import { ApiFailure, api, at, dataOf, hasEnded, type Schema } from '../../../api/client.ts'

export type Job = Schema<'Job'>

/** Seconds after which a job that runs is read again. */
const waitSeconds = 2

/** Creates a job and resolves with its id. Rejects with ApiFailure. */
export async function createJob(task: string, model: string, inputs: Record<string, unknown>): Promise<string> {
  const body = { task: task as Job['task'], model_id: model, inputs }
  return (await dataOf(api.POST('/api/jobs', { body }))).id
}

/** Reads a job until it has ended. Rejects with ApiFailure. */
export async function followJob(id: string): Promise<Job> {
  for (let wait = 0; ; wait = waitSeconds) {
    const job = await dataOf(api.GET('/api/jobs/{id}', at({ id }, { wait })))
    if (hasEnded(job)) return job
  }
}

/** Cancels a job; one that has ended meanwhile stays as it is. */
export async function cancelJob(id: string): Promise<void> {
  try {
    await api.POST('/api/jobs/{id}/cancel', at({ id }))
  } catch (thrown) {
    if (!(thrown instanceof ApiFailure && thrown.code === 'job_already_finished')) throw thrown
  }
}
