import { Failure } from '../../../core/failure.ts'
import type { JobRecord } from '../../../core/store/store.ts'
import type { ExecutionRecord } from '../../../core/store/workflows.ts'
import type { ClientExchange } from '../../http/request/exchange.ts'
import type { Owners } from '../../http/request/owners.ts'
import { hasEnded } from '../../views/job-record.ts'
import { isRunning, waitForExecution } from '../../work/wait.ts'
import type { McpReply } from './message.ts'

/** Whether the client has cancelled the request. A client that disconnected may come back for the result. */
type IsCancelled = () => boolean

const stoppedBy = (what: string, id: string) =>
  new Failure('shutting_down', `The server is stopping. The ${what} ${id} continues after the restart.`)

/**
 * Resolves with the job once it has ended, and reports its progress. If the client cancels the request the job is
 * cancelled; if it disconnects the job continues. Rejects with Failure `cancelled` or `shutting_down`.
 */
export async function followJob(
  exchange: ClientExchange,
  job: JobRecord,
  reply: McpReply,
  isCancelled: IsCancelled,
  { jobs }: Owners<'jobs'>,
): Promise<JobRecord> {
  const { organizationId, id } = job
  const find = async () => {
    const now = await jobs.find(organizationId, id)
    if (!now) throw new Failure('output_expired', `The job ${id} was deleted before it ended.`)
    return now
  }
  let reading = false
  const report = async () => {
    if (reading) return
    reading = true
    const now = await jobs.find(organizationId, id).catch(() => undefined)
    reading = false
    if (!now || hasEnded(now)) return
    const { progress, waitingFor } = jobs.progressOf(now)
    reply.report(progress ?? 0, waitingFor?.detail ?? `The job ${id} runs.`)
  }
  const done = new AbortController()
  const stop = jobs.follow(id, () => void report())
  try {
    // Waits before it reads, because an end between the two would not be announced again.
    const ended = jobs.wait(id, AbortSignal.any([exchange.signal, done.signal]), organizationId)
    await report()
    const before = await find()
    if (hasEnded(before)) return before
    const after = await ended
    if (after) return after
    if (isCancelled()) await jobs.cancel(organizationId, id).catch(() => undefined)
    exchange.signal.throwIfAborted()
    throw stoppedBy('job', id)
  } finally {
    stop()
    done.abort()
  }
}

/** Most seconds of one wait; then the execution is read again. */
const waitSeconds = 60

/** The same for an execution of a workflow. */
export async function followExecution(
  exchange: ClientExchange,
  { organizationId, id }: ExecutionRecord,
  reply: McpReply,
  isCancelled: IsCancelled,
  { executions, jobs }: Owners<'executions' | 'jobs'>,
): Promise<ExecutionRecord> {
  const find = async () => {
    const now = await executions.find(organizationId, id)
    if (!now) throw new Failure('output_expired', `The execution ${id} was deleted before it ended.`)
    return now
  }
  const report = (now: ExecutionRecord) => {
    const { total, completed, failed, skipped } = now.progress
    const ended = completed + failed + skipped
    reply.report(ended / Math.max(1, total), `${ended} of ${total} nodes of the execution ${id} have ended.`)
  }
  let reading = false
  const stop = executions.follow(id, () => {
    if (reading) return
    reading = true
    void executions
      .summary(organizationId, id)
      .then(
        now => now && isRunning(now) && report(now),
        () => undefined,
      )
      .finally(() => (reading = false))
  })
  try {
    for (let now = await find(); ; now = await find()) {
      if (!isRunning(now)) return now
      report(now)
      await waitForExecution(id, waitSeconds, exchange, { executions })
      if (jobs.stats().draining) throw stoppedBy('execution', id)
    }
  } catch (thrown) {
    if (isCancelled()) await executions.cancel(organizationId, id).catch(() => undefined)
    throw thrown
  } finally {
    stop()
  }
}
