import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { Failure } from '../../core/failure.ts'
import { type Api, type Client, dataOf } from '../client/client.ts'

export type Created = Pick<Api['JobCreated'], 'id' | 'status'> & { queue_id: string | null }

/** Pauses before a failed submission is repeated, long enough for a restart of the server. Milliseconds. */
const pausesMs = [1_000, 2_000, 4_000, 8_000, 15_000] as const

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
export const submitJob = (connect: () => Client, body: Api['JobCreate'], options: SubmitOptions): Promise<Created> =>
  submit(connect, ({ submissions }, init) => dataOf(submissions.POST('/api/jobs', { body, ...init })), options)

export interface SubmitOptions {
  signal: AbortSignal
  onTrouble: (sentence: string) => void
}

/** What every attempt of a submission is sent with. */
export interface SubmitInit {
  headers: { 'idempotency-key': string }
  signal: AbortSignal
}

/** Submits any request that creates something, in the same way. */
export async function submit<T>(
  connect: () => Client,
  send: (client: Client, init: SubmitInit) => Promise<T>,
  { signal, onTrouble }: SubmitOptions,
): Promise<T> {
  const headers = { 'idempotency-key': randomUUID() }
  for (let attempt = 0; ; attempt++) {
    try {
      return await send(connect(), { headers, signal })
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

/** Sends a request to cancel, with retries. Resolves with its answer; undefined when the work had already ended. */
export async function cancel<T>(
  connect: () => Client,
  send: (client: Client) => Promise<T>,
  signal: AbortSignal,
): Promise<T | undefined> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await send(connect())
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
