import { StringDecoder } from 'node:string_decoder'

/**
 * Buffers of many megabytes that V8 takes from the system, because they are resizable, and gives back as soon as they are
 * garbage. `malloc` keeps blocks of up to 32 MB for later once it has freed one: 120 MB after bodies of 30 MB.
 */
const large = 1 << 20

/** Returns a buffer of zeros. */
export const systemBuffer = (bytes: number): Buffer<ArrayBuffer> =>
  Buffer.from(new ArrayBuffer(bytes, { maxByteLength: bytes }), 0, bytes)

/** Encodes a text as UTF-8. */
export function encodedText(text: string): Uint8Array<ArrayBuffer> {
  if (text.length < large) return new TextEncoder().encode(text)
  const buffer = systemBuffer(Buffer.byteLength(text))
  buffer.write(text)
  return buffer
}

/** Bytes of a piece of text, so few that node makes a string of V8's memory of them. */
const pieceBytes = 512 << 10

/** Decodes UTF-8. */
export function decodedText(bytes: Buffer): string {
  if (bytes.length < large) return bytes.toString('utf8')
  const decoder = new StringDecoder('utf8')
  const pieces: string[] = []
  for (let at = 0; at < bytes.length; at += pieceBytes) pieces.push(decoder.write(bytes.subarray(at, at + pieceBytes)))
  return pieces.join('') + decoder.end()
}
