import { createHash } from 'node:crypto'
import { canonicalHash } from '../../../core/canonical.ts'
import { Failure, invalid } from '../../../core/failure.ts'
import type { IdempotencyKey, IdempotencyRecord } from '../../../core/store/store.ts'
import { errorAnswer } from './errors.ts'
import type { ClientExchange } from './exchange.ts'
import type { KeyLock } from './idempotency-records.ts'
import type { Owners } from './owners.ts'

/** Returns the `Idempotency-Key` of a request; undefined without one. Throws Failure `invalid_value`. */
export function idempotencyKeyOf(exchange: ClientExchange): string | undefined {
  const given = exchange.req.headers['idempotency-key']
  if (given === undefined) return undefined
  if (typeof given !== 'string' || !/^[\x21-\x7e]{1,255}$/.test(given))
    throw invalid('Idempotency-Key', "'Idempotency-Key' must be 1 to 255 printable ASCII characters without spaces.")
  return given
}

/**
 * Returns the idempotency key of a durable job, scoped to the endpoint, with the hash of the body; null without a key.
 * `body` is hashed unless it was hashed when it was read.
 */
export function idempotencyOf(exchange: ClientExchange, body: unknown): (IdempotencyKey & { at: number }) | null {
  const given = idempotencyKeyOf(exchange)
  if (given === undefined) return null
  const { method, path } = exchange.route
  return {
    key: `${method} ${path} ${given}`,
    bodyHash: exchange.bodyHash ?? canonicalHash(body),
    at: exchange.steady.now(),
  }
}

/** The answer to a repeated request if the first answer cannot be sent twice. */
export interface Unrepeatable {
  message: string
  facts: Record<string, string>
}

/** Bytes. Longer answers are not stored. */
const longestKeptAnswer = 1 << 20

/**
 * Locks the key of a request that has one and whose body is hashed, until its answer is kept or the request ends. Throws as
 * `IdempotencyRecords.lock` does.
 */
async function lockKey(exchange: ClientExchange, { idempotency }: Owners<'idempotency'>) {
  const { method, path } = exchange.route
  const scoped = `${exchange.caller.organizationId} ${method} ${path} ${idempotencyKeyOf(exchange)}`
  const digest = createHash('sha256').update(scoped).digest('hex')
  return (exchange.keyLock = await idempotency.lock(digest, exchange.bodyHash!))
}

/**
 * Locks the key of a request; undefined without one. Resolves with true if the stored answer of an earlier request was sent
 * instead; then the handler returns. Otherwise requests with the same key are refused until the answer is stored or the
 * request ends. `contentType`: of an answer that is not JSON. Throws Failure `conflict` if the first answer cannot be sent
 * again, and as `IdempotencyRecords.lock` does.
 */
export const answeredBefore = (exchange: ClientExchange, owners: Owners<'idempotency'>, contentType?: string) =>
  idempotencyKeyOf(exchange) === undefined ? undefined : answerAgain(exchange, owners, contentType)

async function answerAgain(exchange: ClientExchange, owners: Owners<'idempotency'>, contentType: string | undefined) {
  const { reply } = await lockKey(exchange, owners)
  if (!reply) return false
  if (reply.jobId !== null) exchange.header('x-job-id', reply.jobId)
  refuseUnrepeatable(reply)
  exchange
    .header('idempotent-replayed', 'true')
    .send(reply.status, reply.body, reply.status === 200 ? contentType : undefined)
  return true
}

/**
 * Stores the answer of a request with a key before it is sent, or a replacement if it is too long: a client that has seen an
 * answer gets the same one again.
 */
export async function keepAnswer({ keyLock }: ClientExchange, body: string | Uint8Array, jobId: string): Promise<void> {
  if (!keyLock) return
  const message = `The answer to this 'Idempotency-Key' was too long to be stored. It was for job ${jobId}.`
  if (body.length > longestKeptAnswer) return keepUnrepeatable(keyLock, { message, facts: { job_id: jobId } }, jobId)
  const text = typeof body === 'string' ? body : Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString()
  await keyLock.keep({ status: 200, body: text, jobId })
}

/** Stores that the answer of a request with a key was a stream. */
export async function keepStream({ keyLock }: ClientExchange, jobId: string): Promise<void> {
  if (!keyLock) return
  const message = `The answer to this 'Idempotency-Key' was a stream, and streams are not stored. It was for job ${jobId}.`
  await keepUnrepeatable(keyLock, { message, facts: { job_id: jobId } }, jobId)
}

/** Stores the failure of a request with a key, or releases the key if a repeated request might succeed. */
export async function keepFailure({ id, keyLock, route }: ClientExchange, failure: Failure, jobId: string | null) {
  const { status, code } = failure
  // Failures of the server and of its load are not stored, nor is a cancellation.
  if (status >= 500 || status === 429 || code === 'cancelled') return keyLock?.release()
  await keyLock?.keep({ ...errorAnswer(failure, id, route.errors), jobId })
}

const keepUnrepeatable = (lock: KeyLock, replacement: Unrepeatable, jobId: string | null) =>
  lock.keep({ status: 409, body: JSON.stringify(replacement), jobId })

function refuseUnrepeatable(reply: IdempotencyRecord) {
  if (reply.status !== 409) return
  const { message, facts } = JSON.parse(reply.body) as Unrepeatable
  throw new Failure('conflict', message, { param: 'Idempotency-Key', facts })
}

/**
 * Processes a request whose answer must not be stored, because it contains a secret. A repeated request is refused with
 * `replacement`.
 */
export async function once<T>(
  exchange: ClientExchange,
  input: unknown,
  work: () => T | Promise<T>,
  replacement: (value: T) => Unrepeatable,
  owners: Owners<'idempotency'>,
): Promise<T> {
  if (idempotencyKeyOf(exchange) === undefined) return work()
  exchange.bodyHash = canonicalHash(input)
  const lock = await lockKey(exchange, owners)
  if (lock.reply) refuseUnrepeatable(lock.reply)
  const value = await work()
  await keepUnrepeatable(lock, replacement(value), null)
  return value
}
