import { renderUnicodeCompact } from 'uqr'
import { lanAddress } from './lan-address.ts'

/**
 * Returns a QR code of the first URL that other machines can reach, with the URL below; undefined when there is none.
 */
export function qrCode(urls: readonly string[]): string | undefined {
  const url = lanAddress(urls)
  return url === undefined ? undefined : `${renderUnicodeCompact(`${url}/docs`, { border: 2 })}\n${url}/docs`
}
