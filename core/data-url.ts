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
  return bytesOfUsualBase64(text) ?? bytesOfUsualBase64(percentDecoded(text).replace(/\s+/g, ''))
}

/**
 * The same for base64 in one piece or in lines; undefined for anything else. A megabyte takes half a millisecond, and
 * percent-encoded ten. Pure.
 */
export function bytesOfUsualBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  const bytes = Buffer.from(text, 'base64')
  // Node skips what is not base64, so a wrong text decodes to fewer bytes than its length says.
  return bytes.length > 0 && bytes.length === decodedLength(text) ? owned(bytes) : undefined
}

/** Whitespace of more than this part of a text is no line breaks. */
const mostWhitespace = 1 / 16

function decodedLength(text: string): number {
  let digits = text.length
  while (digits > 0 && /[=\s]/.test(text[digits - 1]!)) digits--
  let whitespace = 0
  for (const one of '\n\r\t ')
    for (let at = text.indexOf(one); at >= 0 && at < digits; at = text.indexOf(one, at + 1))
      if (++whitespace > text.length * mostWhitespace) return Number.NaN
  return Math.floor(((digits - whitespace) * 3) / 4)
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
