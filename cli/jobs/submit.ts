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
export async function submitJob(
  connect: () => Client,
  body: JobRequest,
  { signal, onTrouble }: { signal: AbortSignal; onTrouble: (sentence: string) => void },
): Promise<Created> {
  const headers = { 'idempotency-key': randomUUID() }
  for (let attempt = 0; ; attempt++) {
    try {
      const path = '/api/jobs'
      return await connect().ask({ method: 'POST', path, body, headers, answer: Created, signal, silenceMs })
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
export async function cancelJob(connect: () => Client, id: string, signal: AbortSignal): Promise<Job | undefined> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await connect().ask({ method: 'POST', path: `${jobPath(id)}/cancel`, answer: Job, signal, silenceMs })
    } catch (thrown) {
      signal.throwIfAborted()
      if (thrown instanceof Failure && thrown.code === 'job_already_finished') return undefined
      const pause = pausesMs[attempt]
      passing(thrown)
      if (pause === undefined) throw thrown
      await sleep(pause, undefined, { signal })
    }
  }
}
