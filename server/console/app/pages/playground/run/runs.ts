import { ApiFailure, api, at, dataOf, hasEnded, type Schema, send } from '../../../api/client.ts'

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

/** Stores a file for thirty days and resolves with its id, which is an input of any request. */
export async function uploadFile(file: File): Promise<string> {
  const form = new FormData()
  form.set('purpose', 'user_data')
  form.set('expires_after[anchor]', 'created_at')
  form.set('expires_after[seconds]', '2592000')
  form.set('file', file)
  const answer = await send('/std/v1/files', { method: 'POST', body: form })
  return ((await answer.json()) as { id: string }).id
}
