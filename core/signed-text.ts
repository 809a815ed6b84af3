import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto'

/** Returns the signature of a text for an address: 43 characters. */
export const signature = (key: KeyObject, text: string): string =>
  createHmac('sha256', key).update(text).digest('base64url')

/** Compares signatures as text: another base64 encoding of the same bytes is not valid. */
export function isSame(given: string, expected: string): boolean {
  const one = Buffer.from(given)
  const other = Buffer.from(expected)
  return one.length === other.length && timingSafeEqual(one, other)
}

const unixSeconds = /^[1-9]\d{0,11}$/

/** Whether a text is a time in Unix seconds that has not come yet. `now`: epoch milliseconds. */
export const isFuture = (expires: string, now: number): boolean =>
  unixSeconds.test(expires) && Number(expires) * 1000 > now
