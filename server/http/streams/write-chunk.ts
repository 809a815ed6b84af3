import type { ServerResponse } from 'node:http'
import { writeTogether } from '../../../core/write-together.ts'

/**
 * Writes a part of a streamed answer, given as latin1 of its bytes. Returns false if the reader has not read enough;
 * `drain` follows. Node writes the length, the line ends and the bytes of a chunk as four pieces, which takes half as
 * long again as one text.
 */
export function writeChunk(res: ServerResponse, text: string): boolean {
  if (res.socket) writeTogether(res.socket)
  // A client of HTTP/1.0 gets no chunks. An empty one would end the answer.
  if (!res.chunkedEncoding || text === '') return res.write(text, 'latin1')
  res.chunkedEncoding = false
  const hasRoom = res.write(`${text.length.toString(16)}\r\n${text}\r\n`, 'latin1')
  res.chunkedEncoding = true
  return hasRoom
}
