import { Failure } from '../failure.ts'
import type { Log } from '../log.ts'
import type { Store, WaitingJob } from '../store/store.ts'
import type { CommitEffects } from '../store/workflows.ts'
import type { NodeWorks } from './node-run.ts'
import type { SingleFlight } from './single-flight.ts'

/**
 * Queues the jobs of nodes that may run from now on. One whose work has been done before takes over that result and is
 * not queued; one whose work is being done waits for it here, where it holds no slot of an engine.
 */
export function openNodeQueueing({
  store,
  works,
  flight,
  queue,
  ended,
  log,
}: {
  store: Pick<Store['jobs'], 'find'>
  works: Pick<NodeWorks, 'ahead' | 'forget'>
  flight: SingleFlight
  /** Queues jobs for a slot of an engine. */
  queue: (jobs: readonly WaitingJob[]) => void
  /** Resolves when the job has ended, or the signal aborts. */
  ended: (jobId: string, signal: AbortSignal) => Promise<unknown>
  log: Log
}) {
  async function consider(waiting: WaitingJob): Promise<void> {
    const { id } = waiting
    const unwatch = new AbortController()
    // Watched before anything is looked up: an end that comes in between is announced once.
    const over = ended(id, unwatch.signal)
    const leave = () => {
      unwatch.abort()
      works.forget(id)
    }
    try {
      for (;;) {
        const job = await store.find(waiting.organizationId, id)
        if (job?.status !== 'pending') return leave()
        // What is wrong with its inputs is reported when it runs.
        const found = await works.ahead(job).catch(() => undefined)
        if (!found?.read || found.key === null) {
          leave()
          return queue([waiting])
        }
        const other = flight.other(id, found.key)
        if (other) {
          // Afterwards the result is there, or this job is the next that may make it.
          await other
          continue
        }
        if (!(await flight.begin(job, found.key, 'queued'))) return leave()
        queue([waiting])
        void over.finally(() => {
          flight.end(id, 'queued')
          works.forget(id)
        })
        return
      }
    } catch (thrown) {
      leave()
      throw thrown
    }
  }

  /** A store that cannot be asked is no reason not to do the work. */
  function pass(job: WaitingJob): void {
    consider(job).catch((thrown: unknown) => {
      if (!Failure.from(thrown).retryable) log.error('A cached result could not be looked up', { job: job.id }, thrown)
      queue([job])
    })
  }

  return {
    /** Takes the jobs that a commit has released. */
    released(jobs: CommitEffects['released']): void {
      const direct = jobs.filter(job => job.direct)
      if (direct.length > 0) queue(direct)
      for (const job of jobs) if (!job.direct) pass(job)
    },
  }
}
