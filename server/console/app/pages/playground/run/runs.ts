import { useEffect, useRef, useState } from 'react'
import { ApiFailure, api, at, dataOf, hasEnded, type Schema, send, sendJson } from '../../../api/client.ts'
import type { ModelChoice } from '../choices.ts'
import { type Origin, useKept } from '../kept.ts'

export type Job = Schema<'Job'>

/** What to run. `formats` makes one video for each aspect ratio. */
export interface Wanted {
  task: string
  model: string
  inputs: Record<string, unknown>
  formats?: readonly string[]
  /** Path under `/slug`, which requests with several formats need. */
  slug?: string | undefined
}

/** Seconds after which a job that runs is read again, for its progress. */
const waitSeconds = 2

/** Creates the jobs of a request and resolves with their ids. Rejects with ApiFailure. */
export async function createJobs({ task, model, inputs, formats, slug }: Wanted): Promise<string[]> {
  if (formats && formats.length > 0 && slug) {
    const { aspect_ratio: _, ...shared } = inputs
    const answer = await sendJson(`/slug/${slug}`, { ...shared, aspect_ratios: formats })
    const { requests } = (await answer.json()) as Schema<'GenerationsAccepted'>
    return requests.map(({ request_id }) => request_id.replace(/^q_/, 'job_'))
  }
  const body = { task: task as Job['task'], model_id: model, inputs }
  const { id } = await dataOf(api.POST('/api/jobs', { body }))
  return [id]
}

/** Reads a job until it has ended; `report` gets each state. Rejects with ApiFailure, and if the signal is aborted. */
export async function followJob(id: string, report: (job: Job) => void, signal: AbortSignal): Promise<Job> {
  for (let wait = 0; ; wait = waitSeconds) {
    const params = { path: { id }, query: { wait } }
    const job = await dataOf(api.GET('/api/jobs/{id}', { params, signal }))
    report(job)
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

/** One model's part of a run: its jobs as far as they are read, or why it was refused. */
export interface Run {
  model: ModelChoice
  ids: readonly string[]
  jobs: readonly Job[]
  failure?: Error
}

/** Runs requests, and has their jobs as they progress. Another run replaces them. The tab keeps which jobs they are. */
export function useRuns(task: string, origin: Origin) {
  const [kept, keep] = useKept<readonly Pick<Run, 'model' | 'ids'>[]>(task, 'runs', origin, () => [])
  const [runs, setRuns] = useState<readonly Run[]>(() => kept.map(run => ({ ...run, jobs: [] })))
  const stop = useRef<AbortController>(undefined)

  const begin = () => {
    stop.current?.abort()
    const { signal } = (stop.current = new AbortController())
    const update = (at: number, changed: (run: Run) => Run) => {
      if (!signal.aborted) setRuns(now => now.map((run, place) => (place === at ? changed(run) : run)))
    }
    const follow = (at: number, ids: readonly string[]) => {
      for (const id of ids)
        followJob(id, job => update(at, run => ({ ...run, jobs: withJob(run.jobs, job, ids) })), signal).catch(
          (failure: Error) => update(at, run => ({ ...run, failure })),
        )
    }
    return { update, follow, signal }
  }
  useEffect(() => {
    const { follow } = begin()
    for (const [at, { ids }] of kept.entries()) follow(at, ids)
    return () => stop.current?.abort()
    // Only what the tab had kept when the page was opened: what begins here is followed from the start.
  }, [])

  const start = async (
    models: readonly ModelChoice[],
    inputs: Record<string, unknown>,
    formats: readonly string[],
  ): Promise<ApiFailure[]> => {
    const { update, follow, signal } = begin()
    setRuns(models.map(model => ({ model, ids: [], jobs: [] })))
    keep([])
    const failures: ApiFailure[] = []
    await Promise.all(
      models.map(async (model, at) => {
        try {
          const ids = await createJobs({ task, model: model.id, inputs, formats, slug: model.slugs[task] })
          update(at, run => ({ ...run, ids }))
          if (!signal.aborted) keep(now => [...now, { model, ids }])
          follow(at, ids)
        } catch (thrown) {
          if (thrown instanceof ApiFailure) failures.push(thrown)
          update(at, run => ({ ...run, failure: thrown as Error }))
        }
      }),
    )
    return failures
  }
  return {
    runs,
    start,
    busy: runs.some(
      ({ ids, jobs, failure }) =>
        !failure && (jobs.length < Math.max(1, ids.length) || jobs.some(job => !hasEnded(job))),
    ),
  }
}

/** Jobs stay in the order in which they were created. */
const withJob = (jobs: readonly Job[], job: Job, ids: readonly string[]): Job[] =>
  [...jobs.filter(({ id }) => id !== job.id), job].toSorted((a, b) => ids.indexOf(a.id) - ids.indexOf(b.id))
