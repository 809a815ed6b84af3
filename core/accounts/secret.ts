import { createHmac, type KeyObject, randomBytes, timingSafeEqual } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { Failure } from '../failure.ts'

/**
 * The format of a token's secret: `sk-infer-` + 12 characters that identify its row + `-` + 43 random characters (256
 * bits) + 6 characters of CRC32, all base62. The checksum rejects typos and false matches of secret scanners without a
 * query; the prefix lets one pattern find leaks.
 */
const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const form = /^sk-infer-([0-9A-Za-z]{12})-([0-9A-Za-z]{43})([0-9A-Za-z]{6})$/
const length = 9 + 12 + 1 + 43 + 6

/** Finds secrets in any text; global, for `matchAll`. A match is well formed only if `parseSecret` accepts it too. */
export const secretPattern = /sk-infer-[0-9A-Za-z]{12}-[0-9A-Za-z]{49}/g

function base62(count: number): string {
  let text = ''
  while (text.length < count)
    for (const byte of randomBytes(count * 2)) if (byte < 248 && text.length < count) text += alphabet[byte % 62]
  return text
}

function checksum(text: string): string {
  let rest = crc32(text)
  let out = ''
  for (let i = 0; i < 6; i++, rest = Math.floor(rest / 62)) out = alphabet[rest % 62] + out
  return out
}

/** Creates a secret, and returns it with its public id. */
export function mintSecret(): { secret: string; publicId: string } {
  const publicId = base62(12)
  const body = `sk-infer-${publicId}-${base62(43)}`
  return { secret: body + checksum(body), publicId }
}

/** The public id of a well-formed secret; undefined for anything else. Does not query the store. */
export function parseSecret(text: string): string | undefined {
  if (text.length !== length) return undefined
  const match = form.exec(text)
  return match && checksum(text.slice(0, -6)) === match[3] ? match[1] : undefined
}

/** The part of a secret that may be shown later: its last four characters. */
export const hintOf = (secret: string): string => `…${secret.slice(-4)}`

/** The failure for a text that is no valid secret. It repeats too little of it to be used. */
export const wrongSecret = (secret: string): Failure =>
  new Failure(
    'invalid_api_key',
    `Incorrect API key provided: ${secret.length > 8 ? `${secret.slice(0, 3)}…${secret.slice(-4)}` : '…'}. Create one with "infer token create".`,
  )

/**
 * The stored digest: HMAC-SHA256(pepper, secret). A stolen database alone cannot verify a guess. The pepper is a
 * KeyObject because creating one from bytes costs 11 µs per request, five times the digest itself.
 */
export const digestOf = (pepper: KeyObject, secret: string): Buffer =>
  createHmac('sha256', pepper).update(secret).digest()

const randomDigest = randomBytes(32)

/** Compares in constant time; a missing row costs the same as a wrong secret. */
export function digestMatches(stored: Uint8Array | undefined, given: Uint8Array): boolean {
  const equal = timingSafeEqual(stored ?? randomDigest, given)
  return equal && stored !== undefined
}
