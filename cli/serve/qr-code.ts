import { renderUnicodeCompact } from 'uqr'
import { lanAddress } from './lan-address.ts'

/** The first address that other machines reach, as a QR code with the address below it; undefined when there is none. */
export function qrCode(urls: readonly string[]): string | undefined {
  const url = lanAddress(urls)
  return url === undefined ? undefined : `${renderUnicodeCompact(`${url}/docs`, { border: 2 })}\n${url}/docs`
}
