import type { IncomingMessage } from 'node:http'
import type { BodySize } from '../core/admission/body-memory.ts'
import { Failure } from '../core/failure.ts'

const tooLarge = (most: number) =>
  new Failure(
    'payload_too_large',
    `The body is larger than ${Math.floor(most / 1024)} KiB, the most that is taken here.`,
  )

/**
 * Bodies that say that they are larger have their memory from the start; all of those are counted by the budget below.
 */
const putTogether = 1 << 20

/**
 * The whole body, at most `most` bytes. Requires JSON (or nothing): a form or a text body would be a way for a web
 * page to send requests without asking the browser's leave. Throws Failure `payload_too_large`,
 * `unsupported_media_type`, `cancelled`.
 */
export function readBody(req: IncomingMessage, most: number): Promise<Buffer> {
  const declared = req.headers['content-length']
  if (declared === '0' || (declared === undefined && req.headers['transfer-encoding'] === undefined))
    return Promise.resolve(Buffer.alloc(0))
  const type = req.headers['content-type'] ?? ''
  if (!/^application\/(?:[a-z0-9.-]+\+)?json\s*(?:;|$)/i.test(type))
    return Promise.reject(
      new Failure(
        'unsupported_media_type',
        `Send the body as application/json, not as ${type ? `'${type.slice(0, 80)}'` : 'an unnamed type'}.`,
      ),
    )
  const encoding = req.headers['content-encoding']
  if (encoding !== undefined && encoding !== 'identity')
    return Promise.reject(
      new Failure(
        'unsupported_media_type',
        `A body with Content-Encoding '${encoding.slice(0, 40)}' is not taken; send it uncompressed.`,
      ),
    )
  if (declared !== undefined && Number(declared) > most) {
    return Promise.reject(tooLarge(most))
  }
  // A large one is put together as it comes: to copy megabytes at the end would hold up everybody else.
  let whole = Number(declared) > putTogether ? Buffer.allocUnsafeSlow(Number(declared)) : undefined
  return new Promise((resolve, reject) => {
    let chunks: Buffer[] = []
    let size = 0
    // The listeners stay: taking four off again costs more than the reading. What they hold they let go.
    let over = false
    const take = (chunk: Buffer) => {
      if (over) return
      size += chunk.length
      if (size > most) {
        over = true
        reject(tooLarge(most))
      } else if (whole) chunk.copy(whole, size - chunk.length)
      else chunks.push(chunk)
    }
    const end = () => {
      if (over) return
      over = true
      if (whole) resolve(size === whole.length ? whole : whole.subarray(0, size))
      else resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, size))
      chunks = []
      whole = undefined
    }
    const gone = () => {
      if (over) return
      over = true
      reject(new Failure('cancelled', 'The client went away before its request was complete.'))
    }
    req.on('data', take).on('end', end).on('close', gone).on('error', gone)
  })
}

/** How much is read of a body that is not taken. */
const maxDiscarded = 64 << 20

/** What a body of unannounced length is counted as. */
const unannounced = 1 << 20

/** How many copies of a body there are at a time: as it came and as the engine is sent it. */
const copies = 2
/**
 * How many more there are while a large one is read in a thread: as text, as a value, and as the text that is made of
 * the value. Each of these takes two bytes a character where the text is not Latin.
 */
const copiesWhileRead = 6

/** What a body takes of memory until it has been read. */
export function heldBytes(req: IncomingMessage): BodySize {
  const bytes = Number(req.headers['content-length'] ?? unannounced)
  return { kept: copies * bytes, whileRead: bytes > putTogether ? copiesWhileRead * bytes : 0 }
}

/** How many bytes it takes from then on. */
export const heldAfterReading = (bytes: number): number => copies * bytes

const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0

/** How long a refused body is read. */
const discardMs = 15_000

/**
 * Resolves when the client has sent the rest of its body, or enough of it. To be awaited before a refusal is sent: the
 * connection may be closed behind the answer, and most clients that are still sending then see EPIPE instead of it.
 */
export function discardRest(req: IncomingMessage): Promise<void> {
  return new Promise(resolve => {
    if (!hasBody(req) || req.complete || req.destroyed) return resolve()
    let left = maxDiscarded
    const timer = setTimeout(resolve, discardMs)
    const done = () => {
      clearTimeout(timer)
      resolve()
    }
    req.once('end', done).once('close', done).once('error', done)
    req.on('data', (chunk: Buffer) => {
      left -= chunk.length
      if (left >= 0) return
      // As much again may come while the client reads the answer.
      if (left < -maxDiscarded) req.destroy()
      else done()
    })
  })
}
