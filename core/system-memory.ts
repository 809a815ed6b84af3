import { StringDecoder } from 'node:string_decoder'

/** Texts of fewer characters need no memory of the system. */
const large = 1 << 20

/**
 * Returns a buffer of zeros that V8 takes from the system, because it is resizable, and gives back as soon as it is
 * garbage. `malloc` keeps blocks of up to 32 MB for later once it has freed one: 120 MB after bodies of 30 MB.
 */
export const systemBuffer = (bytes: number): Buffer<ArrayBuffer> =>
  Buffer.from(new ArrayBuffer(bytes, { maxByteLength: bytes }), 0, bytes)

/** Encodes a text as UTF-8, a large one in a `systemBuffer`. */
export function encodedText(text: string): Uint8Array<ArrayBuffer> {
  if (text.length < large) return new TextEncoder().encode(text)
  const buffer = systemBuffer(Buffer.byteLength(text))
  buffer.write(text)
  return buffer
}

/** Bytes of a piece of text, so few that node makes a string of V8's memory of them. */
const pieceBytes = 512 << 10

/** Decodes UTF-8, a large text in pieces. */
export function decodedText(bytes: Buffer): string {
  if (bytes.length < large) return bytes.toString('utf8')
  const decoder = new StringDecoder('utf8')
  const pieces: string[] = []
  for (let at = 0; at < bytes.length; at += pieceBytes) pieces.push(decoder.write(bytes.subarray(at, at + pieceBytes)))
  return pieces.join('') + decoder.end()
}
