import type { ExecutionRecord } from '../../core/store/workflows.ts'
import type { Call } from '../http/request/call.ts'
import type { Owners } from '../http/request/owners.ts'

export const isRunning = ({ finishedAt }: Pick<ExecutionRecord, 'finishedAt'>): boolean => finishedAt === null

/**
 * Resolves when the execution has ended or the time is over. Throws Failure `cancelled` if the client disconnected, and
 * the failure of its token if that may no longer read the execution.
 */
export async function waitForExecution(
  id: string,
  seconds: number,
  call: Call,
  { executions }: Pick<Owners, 'executions'>,
): Promise<void> {
  const stopped = AbortSignal.any([call.signal, AbortSignal.timeout(Math.ceil(seconds * 1000))])
  const { promise, resolve } = Promise.withResolvers<void>()
  const check = () =>
    void executions.summary(call.caller.organizationId, id).then(now => {
      if (!now || !isRunning(now)) resolve()
    }, resolve)
  const stop = executions.follow(id, ended => ended && resolve())
  stopped.addEventListener('abort', () => resolve(), { once: true })
  const unwatch = call.access.watch(call, failure => call.stop(failure))
  check()
  await promise
  unwatch()
  stop()
  call.signal.throwIfAborted()
}
