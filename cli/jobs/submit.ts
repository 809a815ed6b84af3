import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { Failure } from '../../core/failure.ts'
import type { Client } from '../client/client.ts'
import { Job, jobPath } from './job.ts'

/** The body of `POST /api/jobs` that commands send. */
export interface JobRequest {
  task: string
  model_id: string
  inputs: Record<string, unknown>
  priority?: number | string
}

export const Created = z.looseObject({ id: z.string(), queue_id: z.string().nullish(), status: z.string() })
export type Created = z.output<typeof Created>

/** Pauses before a failed submission is repeated, long enough for a restart of the server. Milliseconds. */
const pausesMs = [1_000, 2_000, 4_000, 8_000, 15_000] as const

/** Long, because the server fetches the URLs in the inputs before it answers. Milliseconds. */
const silenceMs = 180_000

/** Returns a temporary failure, after which the same request may succeed; throws any other. */
function temporary(thrown: unknown): Failure {
  const failure = Failure.from(thrown)
  if (['no_capacity', 'shutting_down', 'worker_error', 'idempotency_key_in_use'].includes(failure.code)) return failure
  throw thrown
}

/**
 * Submits a durable job. When the outcome of a submission is unknown, repeats it with the same idempotency key, which
 * creates only one job. Throws a refusal of the server, and the signal's reason.
 */
export async function submitJob(connect: () => Client, body: JobRequest, options: SubmitOptions): Promise<Created> {
  return submit(connect, { path: '/api/jobs', body, answer: Created }, options)
}

export interface SubmitOptions {
  signal: AbortSignal
  onTrouble: (sentence: string) => void
}

/** Submits any request that creates something, in the same way. */
export async function submit<S extends z.ZodType>(
  connect: () => Client,
  { headers: more, ...request }: { path: string; body: unknown; answer: S; headers?: Record<string, string> },
  { signal, onTrouble }: SubmitOptions,
): Promise<z.output<S>> {
  const headers = { ...more, 'idempotency-key': randomUUID() }
  for (let attempt = 0; ; attempt++) {
    try {
      return await connect().ask({ method: 'POST', ...request, headers, signal, silenceMs })
    } catch (thrown) {
      signal.throwIfAborted()
      const failure = temporary(thrown)
      const pause = pausesMs[attempt]
      if (pause === undefined) throw thrown
      onTrouble(`Retrying. ${failure.message}`)
      await sleep(Math.max(pause, Math.min(failure.retryAfterMs ?? 0, 30_000)), undefined, { signal })
    }
  }
}

/** Cancels a job, with retries. Resolves with the record; undefined when the job had already ended. */
export const cancelJob = (connect: () => Client, id: string, signal: AbortSignal): Promise<Job | undefined> =>
  cancel(connect, { path: `${jobPath(id)}/cancel`, answer: Job }, signal)

/** Sends any cancel request, in the same way. */
export async function cancel<S extends z.ZodType>(
  connect: () => Client,
  request: { path: string; answer: S },
  signal: AbortSignal,
): Promise<z.output<S> | undefined> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await connect().ask({ method: 'POST', ...request, signal, silenceMs })
    } catch (thrown) {
      signal.throwIfAborted()
      if (thrown instanceof Failure && finished.has(thrown.code)) return undefined
      const pause = pausesMs[attempt]
      temporary(thrown)
      if (pause === undefined) throw thrown
      await sleep(pause, undefined, { signal })
    }
  }
}

const finished: ReadonlySet<string> = new Set(['job_already_finished', 'execution_already_finished'])
