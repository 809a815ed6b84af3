import { createHash, createHmac, createPublicKey, type KeyObject, sign, timingSafeEqual } from 'node:crypto'
import type { SecretState } from '../store/store.ts'

/** The signing secret of an endpoint or organization, by the number of the secret: 32 bytes. */
const secretBytes = (key: KeyObject, owner: string, version: number): Buffer =>
  createHmac('sha256', key).update(`${owner}\n${version}`).digest()

/** Returns the current secret of an endpoint or organization as receivers configure it: `whsec_` and base64. */
export const secretText = (key: KeyObject, owner: string, { version }: SecretState): string =>
  `whsec_${secretBytes(key, owner, version).toString('base64')}`

/** Returns the part of a secret that may be shown later: its last four characters without padding. */
export const secretHint = (secret: string): string => `whsec_…${secret.replace(/=+$/, '').slice(-4)}`

/** Returns the secrets that sign now, the current one first. */
export function activeSecrets(key: KeyObject, owner: string, state: SecretState, now: number): Buffer[] {
  const { version, previousUntil } = state
  const withPrevious = version > 1 && previousUntil !== null && previousUntil > now
  return (withPrevious ? [version, version - 1] : [version]).map(one => secretBytes(key, owner, one))
}

/** The headers of Standard Webhooks for a message; `at` in epoch milliseconds. One signature for each secret. */
export function standardHeaders(
  secrets: readonly Uint8Array[],
  { id, at, body }: { id: string; at: number; body: string },
): Record<string, string> {
  const timestamp = String(Math.floor(at / 1000))
  const signatures = secrets.map(
    secret => `v1,${createHmac('sha256', secret).update(`${id}.${timestamp}.${body}`).digest('base64')}`,
  )
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures.join(' ') }
}

/** How far the time of a signed message may differ from now, seconds. */
const toleranceSeconds = 300

/** Whether one of the secrets has signed a message with these headers within the last five minutes; `now` in epoch milliseconds. */
export function isSignedBy(
  secrets: readonly Uint8Array[],
  { headers, body, now }: { headers: Readonly<Record<string, unknown>>; body: Uint8Array; now: number },
): boolean {
  const { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': given } = headers
  if (typeof id !== 'string' || typeof timestamp !== 'string' || typeof given !== 'string') return false
  if (!/^\d{1,12}$/.test(timestamp) || Math.abs(Number(timestamp) - now / 1000) > toleranceSeconds) return false
  const expected = secrets.map(secret =>
    Buffer.from(`v1,${createHmac('sha256', secret).update(`${id}.${timestamp}.`).update(body).digest('base64')}`),
  )
  return given.split(' ', 20).some(text => {
    const one = Buffer.from(text)
    return expected.some(other => one.length === other.length && timingSafeEqual(one, other))
  })
}

/** The headers of a webhook in fal's form; `at` in epoch milliseconds. */
export function falHeaders(
  key: KeyObject,
  { requestId, userId, at, body }: { requestId: string; userId: string; at: number; body: string },
): Record<string, string> {
  const timestamp = String(Math.floor(at / 1000))
  const digest = createHash('sha256').update(body).digest('hex')
  const signature = sign(null, Buffer.from([requestId, userId, timestamp, digest].join('\n')), key)
  return {
    'x-fal-webhook-request-id': requestId,
    'x-fal-webhook-user-id': userId,
    'x-fal-webhook-timestamp': timestamp,
    'x-fal-webhook-signature': signature.toString('hex'),
  }
}

/** A public key as receivers of webhooks in fal's form read it (RFC 8037). */
export interface PublicJwk {
  kty: 'OKP'
  crv: 'Ed25519'
  x: string
  kid: string
  use: 'sig'
  alg: 'EdDSA'
}

/** Returns the public half of an Ed25519 key. */
export function publicJwk(key: KeyObject): PublicJwk {
  const { x } = createPublicKey(key).export({ format: 'jwk' }) as { x: string }
  const kid = createHash('sha256').update(x).digest('base64url').slice(0, 16)
  return { kty: 'OKP', crv: 'Ed25519', x, kid, use: 'sig', alg: 'EdDSA' }
}
