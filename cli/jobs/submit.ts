import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { Failure } from '../../core/failure.ts'
import type { Client } from '../client.ts'
import { Job, jobPath } from './job.ts'

/** What `POST /api/jobs` takes of what the command line sends. */
export interface JobRequest {
  task: string
  model_id: string
  inputs: Record<string, unknown>
  priority?: number | string
}

export const Created = z.looseObject({ id: z.string(), queue_id: z.string().nullish(), status: z.string() })
export type Created = z.output<typeof Created>

/** Before a submission that did not come through is put again; a server that starts again is there by then. */
const pausesMs = [1_000, 2_000, 4_000, 8_000, 15_000] as const

/** A server fetches what addresses name before it answers. Milliseconds. */
const silenceMs = 180_000

/** What was thrown, when the same submission may go through in a moment; else thrown on. */
function passing(thrown: unknown): Failure {
  const failure = Failure.from(thrown)
  if (['no_capacity', 'shutting_down', 'worker_error', 'idempotency_key_in_use'].includes(failure.code)) return failure
  throw thrown
}

/**
 * Submits a job that survives the server. A submission of which nobody knows whether it came through is put again under
 * the same key, and so makes one job. Throws what the server refuses, and the signal's reason.
 */
export async function submitJob(connect: () => Client, body: JobRequest, terms: Submitting): Promise<Created> {
  return submit(connect, { path: '/api/jobs', body, answer: Created }, terms)
}

export interface Submitting {
  signal: AbortSignal
  onTrouble: (sentence: string) => void
}

/** The same for whatever the server begins with one request. */
export async function submit<S extends z.ZodType>(
  connect: () => Client,
  request: { path: string; body: unknown; answer: S },
  { signal, onTrouble }: Submitting,
): Promise<z.output<S>> {
  const headers = { 'idempotency-key': randomUUID() }
  for (let attempt = 0; ; attempt++) {
    try {
      return await connect().ask({ method: 'POST', ...request, headers, signal, silenceMs })
    } catch (thrown) {
      signal.throwIfAborted()
      const failure = passing(thrown)
      const pause = pausesMs[attempt]
      if (pause === undefined) throw thrown
      onTrouble(`Trying again. ${failure.message}`)
      await sleep(Math.max(pause, Math.min(failure.retryAfterMs ?? 0, 30_000)), undefined, { signal })
    }
  }
}

/** Cancels a job, and tries until the server has heard it. Resolves with the record; undefined when it had already ended. */
export const cancelJob = (connect: () => Client, id: string, signal: AbortSignal): Promise<Job | undefined> =>
  cancel(connect, { path: `${jobPath(id)}/cancel`, answer: Job }, signal)

/** The same for whatever the server can be told to end. */
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
      passing(thrown)
      if (pause === undefined) throw thrown
      await sleep(pause, undefined, { signal })
    }
  }
}

const finished: ReadonlySet<string> = new Set(['job_already_finished', 'execution_already_finished'])
