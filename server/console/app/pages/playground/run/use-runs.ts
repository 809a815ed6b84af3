import { useEffect, useRef, useState } from 'react'
import { ApiFailure } from '../../../api/failure.ts'
import type { ModelChoice } from '../choices.ts'
import { createJobs, followJob, hasEnded, type Job } from './run-job.ts'

/** One model's part of a run: its jobs, or why it was refused. */
export interface Run {
  model: ModelChoice
  jobs: readonly Job[]
  failure?: Error
}

/** Runs requests, and has their jobs as they progress. Another run replaces them. */
export function useRuns() {
  const [runs, setRuns] = useState<readonly Run[]>([])
  const stop = useRef<AbortController>(undefined)
  useEffect(() => () => stop.current?.abort(), [])

  const start = async (
    task: string,
    models: readonly ModelChoice[],
    inputs: Record<string, unknown>,
    formats: readonly string[],
  ): Promise<ApiFailure[]> => {
    stop.current?.abort()
    const { signal } = (stop.current = new AbortController())
    setRuns(models.map(model => ({ model, jobs: [] })))
    const update = (at: number, changed: (run: Run) => Run) => {
      if (!signal.aborted) setRuns(now => now.map((run, place) => (place === at ? changed(run) : run)))
    }
    const failures: ApiFailure[] = []
    await Promise.all(
      models.map(async (model, at) => {
        try {
          const ids = await createJobs({ task, model: model.id, inputs, formats, slug: model.slugs[task] })
          for (const id of ids)
            followJob(id, job => update(at, run => ({ ...run, jobs: withJob(run.jobs, job, ids) })), signal).catch(
              (failure: Error) => update(at, run => ({ ...run, failure })),
            )
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
    busy: runs.some(({ jobs, failure }) => !failure && (jobs.length === 0 || jobs.some(job => !hasEnded(job)))),
  }
}

/** Jobs stay in the order in which they were created. */
const withJob = (jobs: readonly Job[], job: Job, ids: readonly string[]): Job[] =>
  [...jobs.filter(({ id }) => id !== job.id), job].toSorted((a, b) => ids.indexOf(a.id) - ids.indexOf(b.id))
