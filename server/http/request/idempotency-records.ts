import { Failure, invalid } from '../../../core/failure.ts'
import type { Log } from '../../../core/log.ts'
import type { SteadyTime } from '../../../core/steady-time.ts'
import type { IdempotencyRecord, Store } from '../../../core/store/store.ts'

/** The exclusive right to process the request of a key, until it is released. */
export interface KeyLock {
  /** The stored answer, if the request was processed before. */
  reply: IdempotencyRecord | undefined
  /** Says which job the request runs as: a repeated request is told. */
  named(jobId: string): void
  /**
   * Stores the answer for repeated requests, across restarts, and releases the key. A failure is only logged: the work has
   * been done.
   */
  keep(reply: { status: number; body: string; jobId: string | null }): Promise<void>
  release(): void
}

const reused = () =>
  invalid(
    'Idempotency-Key',
    "This 'Idempotency-Key' was sent with another body before. Use a new key for a new request.",
    'idempotency_key_reused',
  )

const inUse = (jobId: string | undefined) =>
  new Failure(
    'idempotency_key_in_use',
    `The first request with this 'Idempotency-Key' is still running${jobId === undefined ? '' : ` as ${jobId}`}. Send it again in 1 s.`,
    { param: 'Idempotency-Key', retryAfterMs: 1_000, ...(jobId === undefined ? {} : { facts: { job_id: jobId } }) },
  )

interface RecordOptions {
  store: Pick<Store, 'idempotency'>
  steady: SteadyTime
  log: Log
}

/** Opens the idempotency records: running requests with a key, and stored answers of earlier ones. */
export function openIdempotencyRecords({ store, steady, log }: RecordOptions) {
  const running = new Map<string, { bodyHash: string; jobId?: string }>()

  return {
    /**
     * Begins the request of this key. Throws Failure `idempotency_key_in_use` while another request with the key runs, with
     * the id of its job if it has one yet, and `idempotency_key_reused` if a running or earlier request with the key had
     * another body.
     */
    async lock(digest: string, bodyHash: string): Promise<KeyLock> {
      const other = running.get(digest)
      if (other && other.bodyHash !== bodyHash) throw reused()
      if (other) throw inUse(other.jobId)
      const own: { bodyHash: string; jobId?: string } = { bodyHash }
      running.set(digest, own)
      let isHeld = true
      const release = () => {
        if (isHeld) running.delete(digest)
        isHeld = false
      }
      try {
        const reply = await store.idempotency.find(digest)
        if (reply && reply.bodyHash !== bodyHash) throw reused()
        // Nothing runs then, so further requests need not wait.
        if (reply) release()
        return {
          reply,
          named(jobId) {
            own.jobId = jobId
          },
          async keep(answer) {
            try {
              await store.idempotency.keep(digest, { ...answer, bodyHash, createdAt: steady.now() })
            } catch (thrown) {
              log.warn('An answer could not be stored for its idempotency key', { job: answer.jobId }, thrown)
            } finally {
              // Before the answer is sent: its reader may send the key again at once.
              release()
            }
          },
          release,
        }
      } catch (thrown) {
        release()
        throw thrown
      }
    },
  }
}
export type IdempotencyRecords = ReturnType<typeof openIdempotencyRecords>
