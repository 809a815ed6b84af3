import type { Cpu } from '../../cpu/cpu.ts'
import { Failure } from '../../failure.ts'
import { noModel } from '../../models/no-model.ts'
import type { StepTask } from '../../schemas/task.ts'
import { noUsage } from '../../usage.ts'
import { answeredResult, type RunTask } from '../run-job.ts'
import type { stepWork } from './step-work.ts'

/** How long a step may take, milliseconds. */
const limitMs = 20_000

/**
 * Runs tasks without a model in threads. One that takes too long ends with its thread and fails; it would take as long
 * again, so it is not retried.
 */
export function openStepRunner({ calling }: Pick<Cpu, 'calling'>, { maxMs = limitMs } = {}): RunTask {
  const call = calling<typeof stepWork>()
  return async (job, _lease, signal) => {
    const overrun = new AbortController()
    const timer = setTimeout(() => overrun.abort(tooLong(job.task, maxMs)), maxMs)
    try {
      const request = { task: job.task as StepTask, inputs: job.inputs }
      const body = await call('steps', 'runStep', request, { signal: AbortSignal.any([signal, overrun.signal]) })
      return answeredResult({ body, usage: noUsage }, noModel)
    } finally {
      clearTimeout(timer)
    }
  }
}

const tooLong = (task: string, ms: number): Failure =>
  new Failure('timeout', `${task} took longer than ${ms / 1_000} s. Give it less text, or a simpler pattern.`, {
    final: true,
  })
