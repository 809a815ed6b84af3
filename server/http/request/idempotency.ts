import { createHash } from 'node:crypto'
import { canonicalHash } from '../../../core/canonical.ts'
import { Failure } from '../../../core/failure.ts'
import type { IdempotencyKey, IdempotencyRecord } from '../../../core/store/store.ts'
import type { Call } from './call.ts'
import type { Hold } from './idempotency-records.ts'
import type { Owners } from './owners.ts'

/** Returns the `Idempotency-Key` of a request; undefined without one. Throws Failure `invalid_value`. */
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
 * Returns the idempotency key of a durable job, scoped to the endpoint, with the hash of the body; null without a key.
 * `body` is hashed unless it was hashed when it was read.
 */
export function idempotencyOf(call: Call, body: unknown): (IdempotencyKey & { at: number }) | null {
  const given = idempotencyKeyOf(call)
  if (given === undefined) return null
  const { method, path } = call.route
  return { key: `${method} ${path} ${given}`, bodyHash: call.bodyHash ?? canonicalHash(body), at: call.steady.now() }
}

/** The answer to a repeated request if the first answer cannot be sent twice. */
export interface Unrepeatable {
  message: string
  facts: Record<string, string>
}

/** Bytes. Longer answers are not stored. */
export const longestKeptAnswer = 1 << 20

/** Holds the key of a call that has one and whose body is hashed. Throws as `hold` does. */
export function holdKey(call: Call, { idempotency }: Pick<Owners, 'idempotency'>): Promise<Hold> {
  const { method, path } = call.route
  const scoped = `${call.caller.organizationId} ${method} ${path} ${idempotencyKeyOf(call)}`
  return idempotency.hold(createHash('sha256').update(scoped).digest('hex'), call.bodyHash!)
}

/** Stores the answer to repeated requests if the first answer cannot be sent again. */
export const keepUnrepeatable = (hold: Hold, replacement: Unrepeatable, jobId: string | null): Promise<void> =>
  hold.keep({ status: 409, body: JSON.stringify(replacement), jobId })

/** Stores the answer of a call, or a replacement if the answer is too long. */
export function keepAnswer(hold: Hold, body: string | Uint8Array, jobId: string): Promise<void> {
  const message = `The answer to this 'Idempotency-Key' was too long to be stored. It was for job ${jobId}.`
  if (body.length > longestKeptAnswer) return keepUnrepeatable(hold, { message, facts: { job_id: jobId } }, jobId)
  const text = typeof body === 'string' ? body : Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString()
  return hold.keep({ status: 200, body: text, jobId })
}

/**
 * Answers a repeated request. Pass `contentType` if the answer is not JSON. Throws Failure `conflict` if the first
 * answer cannot be sent again.
 */
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
 * Processes a request whose answer must not be stored, because it contains a secret. A repeated request is refused with
 * `replacement`.
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
