/** Maximum characters before the content of a `data:` URL. */
const longestHead = 1024
/** Parameters may be quoted and hold commas; some programs write spaces around the parts. */
const head = /^\s*data:(?:[^,"]|"[^"]*")*;\s*base64\s*,/i
const start = /^\s{0,8}data:/i

/** Whether a text is a `data:` URL, with or without base64. Pure. */
export const isDataUrl = (text: string): boolean => start.test(text.slice(0, 16))

/** Returns where the base64 of a `data:` URL begins; undefined for a URL of another kind. Pure. */
export const contentStart = (url: string): number | undefined => head.exec(url.slice(0, longestHead))?.[0].length

/**
 * Decodes base64 as programs write it: in lines, with or without padding, in either alphabet, percent-encoded. Returns
 * undefined for other or empty text. The bytes have their own memory and can be transferred to a thread. Pure.
 */
export function bytesOfBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  const bytes = Buffer.from(text, 'base64')
  if (bytes.length > 0 && bytes.length === decodedLength(text, text.length)) return owned(bytes)
  const plain = percentDecoded(text).replace(/\s+/g, '')
  const again = Buffer.from(plain, 'base64')
  return again.length > 0 && again.length === decodedLength(plain, plain.length) ? owned(again) : undefined
}

/** Node skips what is not base64, so a wrong text decodes to fewer bytes than its length says. */
function decodedLength(text: string, length: number): number {
  let digits = length
  while (digits > 0 && text.charCodeAt(digits - 1) === 0x3d) digits--
  return Math.floor((digits * 3) / 4)
}

function percentDecoded(text: string): string {
  try {
    return text.includes('%') ? decodeURIComponent(text) : text
  } catch {
    return text
  }
}

/** Node keeps small buffers in memory that they share. */
const owned = (bytes: Buffer): Uint8Array<ArrayBuffer> =>
  bytes.byteLength === bytes.buffer.byteLength && bytes.buffer instanceof ArrayBuffer
    ? new Uint8Array(bytes.buffer)
    : new Uint8Array(bytes)
