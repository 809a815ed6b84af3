import { Failure } from '../failure.ts'
import type { Log } from '../log.ts'
import type { JobRecord, Store, WaitingJob } from '../store/store.ts'
import type { Moves } from '../store/workflows.ts'
import type { NodeWorkOf } from './node-run.ts'

/**
 * What is asked before the job of a node is queued: whether the same work has been done before, or is being done. Then
 * the node takes over that result and needs no engine. Jobs whose results are their own go straight on.
 */
export function openGate({
  store,
  work,
  queue,
  ended,
  log,
}: {
  store: Pick<Store, 'jobs' | 'executions'>
  work: NodeWorkOf
  /** Lets jobs wait for an engine. */
  queue: (jobs: readonly WaitingJob[]) => void
  /** Resolves when the job has ended. */
  ended: (job: JobRecord) => Promise<unknown>
  log: Log
}) {
  /** The jobs under way by the key of their work, and who waits for their results. */
  const underWay = new Map<string, WaitingJob[]>()

  async function consider(waiting: WaitingJob): Promise<void> {
    const { id, organizationId } = waiting
    const job = await store.jobs.find(organizationId, id)
    if (job?.status !== 'pending') return
    const found = await work(job).catch(() => undefined)
    // What is wrong with it is said when it runs.
    if (!found?.read || found.key === null) return queue([waiting])
    const { key } = found
    const others = underWay.get(key)
    if (others) return void others.push(waiting)
    // From here on whoever comes with the same work waits, whatever has to be waited for here.
    underWay.set(key, [])
    let taken = false
    try {
      const before = await store.executions.cached(organizationId, key)
      taken =
        before !== undefined && (await store.executions.reuse(organizationId, id, { jobId: before, at: Date.now() }))
    } catch (thrown) {
      letGo(key)
      throw thrown
    }
    if (taken) return letGo(key)
    queue([waiting])
    void ended(job).finally(() => letGo(key))
  }

  /** Those who waited for the result look again: it is there, or one of them makes it. */
  function letGo(key: string): void {
    const waited = underWay.get(key) ?? []
    underWay.delete(key)
    for (const one of waited) pass(one)
  }

  /** A store that cannot be asked is no reason not to do the work. */
  function pass(job: WaitingJob): void {
    consider(job).catch((thrown: unknown) => {
      if (!Failure.from(thrown).retryable) log.error('A cached result could not be looked up', { job: job.id }, thrown)
      queue([job])
    })
  }

  return {
    /** Jobs of nodes that may run from now on. */
    released(jobs: Moves['released']): void {
      const direct = jobs.filter(job => job.direct)
      if (direct.length > 0) queue(direct)
      for (const job of jobs) if (!job.direct) pass(job)
    },
  }
}
