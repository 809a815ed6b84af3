import { Failure } from '../failure.ts'
import type { Log } from '../log.ts'
import type { Store, WaitingJob } from '../store/store.ts'
import type { CommitEffects } from '../store/workflows.ts'
import type { RunningWorkflow } from './nested-executions.ts'
import { type NodeWorks, workflowRunOf } from './node-run.ts'
import type { SingleFlight } from './single-flight.ts'

/**
 * Queues released node jobs. The node of a job whose condition is false is skipped; that of a node with `for_each` is
 * replaced by the jobs of its items. A job that runs a workflow starts its execution. A job whose work is cached reuses that
 * result and is not queued; a job whose work is being done by another waits for it here, where it holds no engine slot.
 */
export function openNodeQueueing(options: {
  store: { jobs: Pick<Store['jobs'], 'find'>; executions: Pick<Store['executions'], 'skip' | 'expand'> }
  works: Pick<NodeWorks, 'prepare' | 'forget'>
  flight: SingleFlight
  /** Starts the execution of a node that runs a workflow; the store sets the job aside. */
  runWorkflow: (running: RunningWorkflow) => Promise<void>
  /** Queues jobs for an engine slot. */
  queue: (jobs: readonly WaitingJob[]) => void
  /** Resolves when the job has ended, or the signal aborts. */
  ended: (jobId: string, signal: AbortSignal) => Promise<unknown>
  log: Log
}) {
  const { store, works, flight, runWorkflow, queue, ended, log } = options
  async function checkCache(waiting: WaitingJob): Promise<void> {
    const { id } = waiting
    const unwatch = new AbortController()
    // Before any read: an end in between is announced only once.
    const end = ended(id, unwatch.signal)
    const stop = () => {
      unwatch.abort()
      works.forget(id)
    }
    try {
      for (;;) {
        const job = await store.jobs.find(waiting.organizationId, id)
        if (job?.status !== 'pending') return stop()
        // Faults of its inputs are reported when it runs.
        const found = await works.prepare(job).catch(() => undefined)
        if (found?.skipped) {
          await store.executions.skip(waiting.organizationId, id, { at: Date.now() })
          return stop()
        }
        if (found?.items !== undefined) {
          await store.executions.expand(waiting.organizationId, id, { at: Date.now(), count: found.items })
          return stop()
        }
        if (found?.runsWorkflow) {
          stop()
          // What prevents it is reported when the job runs.
          return await runWorkflow(workflowRunOf(job, found)).catch(() => queue([waiting]))
        }
        if (!found?.read || found.key === null) {
          stop()
          return queue([waiting])
        }
        const other = flight.other(id, found.key)
        if (other) {
          // Afterwards the result is stored, or this job may do the work next.
          await other
          continue
        }
        if (!(await flight.begin(job, found.key, 'queued'))) return stop()
        queue([waiting])
        void end.finally(() => {
          flight.end(id, 'queued')
          works.forget(id)
        })
        return
      }
    } catch (thrown) {
      stop()
      throw thrown
    }
  }

  /** Queues the job even if the cache cannot be read. */
  function queueUnlessCached(job: WaitingJob): void {
    checkCache(job).catch((thrown: unknown) => {
      if (!Failure.from(thrown).retryable)
        log.error('The condition, list or cached result of a node could not be looked up', { job: job.id }, thrown)
      queue([job])
    })
  }

  return {
    /** Handles the jobs that a commit has released. */
    released(jobs: CommitEffects['released']): void {
      const direct = jobs.filter(job => job.direct)
      if (direct.length > 0) queue(direct)
      for (const job of jobs) if (!job.direct) queueUnlessCached(job)
    },
  }
}
