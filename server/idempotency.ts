import { createHash } from 'node:crypto'
import { canonicalHash } from '../core/canonical.ts'
import { Failure } from '../core/failure.ts'
import type { Log } from '../core/log.ts'
import type { SteadyTime } from '../core/steady-time.ts'
import type { IdempotencyKey, IdempotencyRecord, Store } from '../core/store/store.ts'
import type { Call } from './call.ts'
import type { Owners } from './owners.ts'

/** The `Idempotency-Key` of a request; undefined without one. Throws Failure `invalid_value`. */
export function idempotencyKeyOf(call: Call): string | undefined {
  const given = call.req.headers['idempotency-key']
  if (given === undefined) return undefined
  if (typeof given !== 'string' || !/^[\x21-\x7e]{1,255}$/.test(given))
    throw new Failure(
      'invalid_value',
      "'Idempotency-Key' must be 1 to 255 printable ASCII characters without spaces.",
      { param: 'Idempotency-Key' },
    )
  return given
}

/**
 * The key of a durable job, folded with the endpoint that it is scoped to, and the hash of the body that it stands for;
 * null without one. The hash is taken of `body` unless it was taken when the body was read.
 */
export function idempotencyOf(call: Call, body: unknown): (IdempotencyKey & { at: number }) | null {
  const given = idempotencyKeyOf(call)
  if (given === undefined) return null
  const { method, path } = call.route
  return { key: `${method} ${path} ${given}`, bodyHash: call.bodyHash ?? canonicalHash(body), at: call.steady.now() }
}

/** The right to carry out the one request that a key stands for, until it is disposed of. */
export interface Hold extends Disposable {
  /** Set when it was carried out before: this is what is answered. */
  reply: IdempotencyRecord | undefined
  /** What is answered from now on, across restarts. A store that cannot take it is logged: the work has been done. */
  keep(reply: { status: number; body: string; jobId: string | null }): Promise<void>
}

/** An answer that a repeated request gets in place of one that cannot be given twice. */
export interface Unrepeatable {
  message: string
  facts: Record<string, string>
}

/** Answers longer than this are not kept. */
export const longestKeptAnswer = 1 << 20

const reused = () =>
  new Failure(
    'idempotency_key_reused',
    "This 'Idempotency-Key' came with another body before. Use a new key for a new request.",
    { param: 'Idempotency-Key' },
  )

/** The requests under way that came with a key, and the stored answers of those before. */
export function openIdempotencyRecords({
  store,
  steady,
  log,
}: {
  store: Pick<Store, 'idempotency'>
  steady: SteadyTime
  log: Log
}) {
  const running = new Map<string, string>()

  return {
    /**
     * Begins the request of this key. Throws Failure `idempotency_key_in_use` while another one is under way, and
     * `idempotency_key_reused` where that, or the one before, was another request.
     */
    async hold(digest: string, bodyHash: string): Promise<Hold> {
      const other = running.get(digest)
      if (other !== undefined && other !== bodyHash) throw reused()
      if (other !== undefined)
        throw new Failure(
          'idempotency_key_in_use',
          "The first request with this 'Idempotency-Key' is still under way. Send it again in a moment.",
          { param: 'Idempotency-Key', retryAfterMs: 1_000 },
        )
      running.set(digest, bodyHash)
      const release = () => void running.delete(digest)
      try {
        const reply = await store.idempotency.find(digest)
        if (reply && reply.bodyHash !== bodyHash) throw reused()
        // Nothing is carried out then, so nobody has to wait.
        if (reply) release()
        return {
          reply,
          async keep(answer) {
            try {
              await store.idempotency.keep(digest, { ...answer, bodyHash, createdAt: steady.now() })
            } catch (thrown) {
              log.warn('An answer could not be kept for its idempotency key', { job: answer.jobId }, thrown)
            }
          },
          [Symbol.dispose]: release,
        }
      } catch (thrown) {
        release()
        throw thrown
      }
    },
  }
}
export type IdempotencyRecords = ReturnType<typeof openIdempotencyRecords>

/** Takes the key of a call that has one and whose body's hash is known. Throws as `hold` does. */
export function holdKey(call: Call, { idempotency }: Pick<Owners, 'idempotency'>): Promise<Hold> {
  const { method, path } = call.route
  const scoped = `${call.caller.organizationId} ${method} ${path} ${idempotencyKeyOf(call)}`
  return idempotency.hold(createHash('sha256').update(scoped).digest('hex'), call.bodyHash!)
}

/** Keeps, in place of an answer that cannot be given again, what a repeated request is told. */
export const keepUnrepeatable = (hold: Hold, replacement: Unrepeatable, jobId: string | null): Promise<void> =>
  hold.keep({ status: 409, body: JSON.stringify(replacement), jobId })

/** Keeps the answer of a call, or, of one that is too long for that, what is said in its place. */
export function keepAnswer(hold: Hold, body: string | Uint8Array, jobId: string): Promise<void> {
  const message = `The answer to this 'Idempotency-Key' was too long to be kept. It was the job ${jobId}.`
  if (body.length > longestKeptAnswer) return keepUnrepeatable(hold, { message, facts: { job_id: jobId } }, jobId)
  const text = typeof body === 'string' ? body : Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString()
  return hold.keep({ status: 200, body: text, jobId })
}

/** Answers a repeated request; `contentType` is of an answer that is no JSON. Throws Failure `conflict` where the first answer is not given again. */
export function replay(call: Call, reply: IdempotencyRecord, contentType?: string): void {
  if (reply.jobId !== null) call.header('x-job-id', reply.jobId)
  refuseUnrepeatable(reply)
  call
    .header('idempotent-replayed', 'true')
    .send(reply.status, reply.body, reply.status === 200 ? contentType : undefined)
}

function refuseUnrepeatable(reply: IdempotencyRecord): void {
  if (reply.status !== 409) return
  const { message, facts } = JSON.parse(reply.body) as Unrepeatable
  throw new Failure('conflict', message, { param: 'Idempotency-Key', facts })
}

/**
 * Carries out a request whose answer must not be kept, because it holds a secret: a repeated one is refused, and told
 * what `replacement` says.
 */
export async function once<T>(
  call: Call,
  input: unknown,
  work: () => T | Promise<T>,
  replacement: (value: T) => Unrepeatable,
  owners: Pick<Owners, 'idempotency'>,
): Promise<T> {
  if (idempotencyKeyOf(call) === undefined) return work()
  call.bodyHash = canonicalHash(input)
  using hold = await holdKey(call, owners)
  if (hold.reply) refuseUnrepeatable(hold.reply)
  const value = await work()
  await keepUnrepeatable(hold, replacement(value), null)
  return value
}
