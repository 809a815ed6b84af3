import { once } from 'node:events'
import type { WaitTask } from '../../schemas/task.ts'
import type { ExecutionStore } from '../../store/workflows.ts'
import { taskRecord } from '../registry.ts'
import type { RunTask } from '../run-job.ts'

/**
 * Runs tasks that wait: sets their job aside, which ends the run and frees its slot. `digestOf`: the digest of the token with
 * which the wait of a job may be ended. Calls `begun` with the earliest time at which something is due.
 */
export const openWaitRunner =
  (options: {
    store: Pick<ExecutionStore, 'setAside'>
    digestOf: (jobId: string) => Uint8Array
    begun: (dueAt: number) => void
    clock?: { now(): number }
  }): RunTask =>
  async (job, _lease, signal) => {
    const { store, digestOf, begun, clock = Date } = options
    const { organizationId, id, boot, claims, inputs } = job
    const record = taskRecord(job.task as WaitTask)
    signal.throwIfAborted()
    const stopped = once(signal, 'abort')
    const at = clock.now()
    const times = record.timesOf(JSON.parse(inputs) as never, at)
    const wait = { digest: digestOf(id), ...times }
    await store.setAside(organizationId, id, { awaits: record.awaits, at, inputs, claim: { boot, claims }, wait })
    const due = [times.dueAt, times.remindAt].filter(time => time !== null)
    if (due.length > 0) begun(Math.min(...due))
    await stopped
    throw signal.reason
  }
