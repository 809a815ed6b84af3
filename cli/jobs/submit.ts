import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { Failure } from '../../core/failure.ts'
import { type Api, type Client, dataOf } from '../client/client.ts'
import type { Interrupts } from '../terminal/interruption.ts'
import type { FollowOptions } from './follow-to-end.ts'

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

/** Returns the message about a connection that was lost, with its reason, or that works again. */
export const connectionText = (id: string, trouble: string | undefined): string =>
  trouble === undefined ? 'Connected again.' : `Reconnecting to ${id}. ${trouble}`

/** A job or an execution that runs on the server. */
interface Work<T> {
  id: string
  follow: (following: Pick<FollowOptions<never>, 'signal' | 'onTrouble'>) => Promise<T>
  /** Resolves with the record; with undefined if the work has ended already. */
  cancel: (signal: AbortSignal) => Promise<T | undefined>
}

/** Follows work to its end. The first Ctrl-C cancels it; the server's response to the cancellation is the end. */
export async function followOrCancel<T>(
  { id, follow, cancel: cancelWork }: Work<T>,
  say: (text: string) => void,
  { cancel, leave }: Interrupts,
): Promise<T> {
  const ended = new AbortController()
  const interrupted = new Promise<void>(resolve => {
    if (cancel.aborted) resolve()
    else cancel.addEventListener('abort', () => resolve(), { once: true })
  })
  const never = () => new Promise<never>(() => undefined)
  const cancelled = interrupted.then(async () => {
    if (ended.signal.aborted) return never()
    say(`Cancelling ${id}. Press Ctrl-C again to leave it running.`)
    // The work had ended already: `followed` resolves with its end.
    return (await cancelWork(leave)) ?? never()
  })
  const followed = follow({
    signal: AbortSignal.any([leave, ended.signal]),
    onTrouble: trouble => say(connectionText(id, trouble)),
  })
  followed.catch(() => undefined)
  try {
    return await Promise.race([followed, cancelled])
  } finally {
    ended.abort()
  }
}
