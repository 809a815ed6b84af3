import { createHmac, type KeyObject, randomBytes, timingSafeEqual } from 'node:crypto'

/** What both sides say first. A keeper and a server of different protocols do not work together. */
export const keeperProtocol = 1

/** A number that is used once, as text. */
export const newNonce = (): string => randomBytes(32).toString('base64url')

/** Proves that this side has the key of the data directory, in answer to the other side's nonce. */
export const proofOf = (key: KeyObject, side: 'keeper' | 'server', nonce: string): string =>
  createHmac('sha256', key).update(`${side}\0${nonce}`).digest('base64url')

/** Whether the other side has proved that it has the key. */
export function isProof(key: KeyObject, side: 'keeper' | 'server', nonce: string, proof: unknown): boolean {
  const expected = Buffer.from(proofOf(key, side, nonce))
  const given = Buffer.from(typeof proof === 'string' ? proof : '')
  return given.length === expected.length && timingSafeEqual(given, expected)
}
