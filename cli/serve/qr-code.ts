import { renderUnicodeCompact } from 'uqr'

const loopback = /^https?:\/\/(127\.|localhost[:/]|\[::1\])/

/** The first address that other machines reach, as a QR code with the address below it; undefined when there is none. */
export function qrCode(urls: readonly string[]): string | undefined {
  const url = urls.find(one => !loopback.test(`${one}/`))
  return url === undefined ? undefined : `${renderUnicodeCompact(`${url}/docs`, { border: 2 })}\n${url}/docs`
}
