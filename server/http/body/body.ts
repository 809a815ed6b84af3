import type { IncomingMessage } from 'node:http'
import type { BodySize } from '../../../core/admission/body-memory.ts'
import { countChunk } from '../../../core/collect-garbage.ts'
import { Failure } from '../../../core/failure.ts'
import { systemBuffer } from '../../../core/system-memory.ts'
import type { ClientExchange } from '../request/exchange.ts'
import type { Owners } from '../request/owners.ts'
import { askForBody } from './unread-body.ts'

/**
 * Reads the JSON body of a request within the limits of its route. A thread parses a large body and takes the files out
 * of it.
 */
export async function readJson(exchange: ClientExchange, owners: Owners<'admission' | 'config' | 'cpu'>) {
  const { config, cpu, admission } = owners
  const { route } = exchange
  const { json_body: maxUsual, chat_body: maxLarge } = config.limits
  if (route.largeBody) exchange.releaseBody = admission.holdBody(heldBytes(exchange.req))
  const bytes = await readBody(exchange.req, route.largeBody ? Math.max(maxUsual, maxLarge) : maxUsual, {
    advice: route.whenTooLarge,
  })
  const size = bytes.length
  const hash = exchange.req.headers['idempotency-key'] !== undefined
  const bounds = { ...config.limits, keys: Math.max(config.limits.keys, route.members ?? 0) }
  const read = await cpu.readBody(bytes, bounds, {
    hash,
    files: size > maxUsual,
    asText: route.bodyTexts,
  })
  exchange.releaseBody(heldAfterReading(size))
  exchange.bodyHash = read.hash
  exchange.inline = read.inline
  exchange.texts = read.texts
  return read.value
}

/**
 * Changes the content type of a form to JSON: Ollama's documentation uses `curl -d '{…}'`, which sends JSON with the type
 * of a form. A request with `Origin` is unchanged, because browsers send it with every form.
 */
export function nameAsJson({ headers }: IncomingMessage): void {
  if (headers.origin === undefined && headers['content-type'] === curlType) headers['content-type'] = 'application/json'
}

const curlType = 'application/x-www-form-urlencoded'

/** The failure for what is larger than its limit: `what` begins the sentence, as in `The body is`. */
export const tooLarge = (what: string, maxBytes: number, param?: string, advice = ''): Failure => {
  const message = `${what} larger than ${Math.floor(maxBytes / 1024)} KiB, the limit here.`
  return new Failure('payload_too_large', advice === '' ? message : `${message} ${advice}`, { param })
}

const bodyTypes = {
  json: { name: 'application/json', pattern: /^application\/(?:[a-z0-9.-]+\+)?json\s*(?:;|$)/i },
  form: { name: curlType, pattern: /^application\/x-www-form-urlencoded\s*(?:;|$)/i },
}

/** Bytes. A body with a larger Content-Length gets one buffer at the start; `heldBytes` counts its copies. */
const preallocateAbove = 1 << 20

/**
 * Reads the whole body, at most `maxBytes` bytes. Requires JSON (or an empty body), because a web page may send a form or a
 * text body to another origin without a preflight; or a form, for pages of our own. `advice` ends the refusal of a larger
 * body. Throws Failure `payload_too_large`, `unsupported_media_type`, `cancelled`.
 */
export function readBody(
  req: IncomingMessage,
  maxBytes: number,
  { advice, type: wanted = 'json' }: { advice?: string | undefined; type?: keyof typeof bodyTypes } = {},
): Promise<Buffer> {
  const refusal = () => tooLarge('The body is', maxBytes, undefined, advice)
  const declared = req.headers['content-length']
  if (declared === '0' || (declared === undefined && req.headers['transfer-encoding'] === undefined))
    return Promise.resolve(Buffer.alloc(0))
  const type = req.headers['content-type'] ?? ''
  const refused = (message: string) => Promise.reject(new Failure('unsupported_media_type', message))
  const { pattern, name } = bodyTypes[wanted]
  if (!pattern.test(type))
    return refused(`Send the body as ${name}, not as ${type ? `'${type.slice(0, 80)}'` : 'an unnamed type'}.`)
  const encoding = req.headers['content-encoding']
  if (encoding !== undefined && encoding !== 'identity')
    return refused(`A body with Content-Encoding '${encoding.slice(0, 40)}' is not supported; send it uncompressed.`)
  if (declared !== undefined && Number(declared) > maxBytes) return Promise.reject(refusal())
  askForBody(req)
  // A large body is copied chunk by chunk: copying megabytes at the end would block the event loop.
  let whole = Number(declared) > preallocateAbove ? systemBuffer(Number(declared)) : undefined
  return new Promise((resolve, reject) => {
    let chunks: Buffer[] = []
    let size = 0
    // The listeners are not removed: removing four costs more than reading. `end` drops what they reference.
    let settled = false
    const append = (chunk: Buffer) => {
      if (settled) return
      size += chunk.length
      if (size > maxBytes) {
        settled = true
        reject(refusal())
      } else if (whole) {
        chunk.copy(whole, size - chunk.length)
        countChunk(chunk.length)
      } else chunks.push(chunk)
    }
    const end = () => {
      if (settled) return
      settled = true
      if (whole) resolve(size === whole.length ? whole : whole.subarray(0, size))
      else resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, size))
      chunks = []
      whole = undefined
    }
    const disconnect = () => {
      if (settled) return
      settled = true
      reject(new Failure('cancelled', 'The client disconnected before its request was complete.'))
    }
    req.on('data', append).on('end', end).on('close', disconnect).on('error', disconnect)
  })
}

/** Bytes that a body without a Content-Length is counted as. */
const unknownLength = 1 << 20

/** Copies of a body that exist at a time: as received, and as sent to the engine. */
const copies = 2
/**
 * Further copies while a thread parses a large body: as text, as a value, and as the text that is made of the value.
 * Each of these takes two bytes a character if the text is not Latin.
 */
const copiesWhileRead = 6

/** Returns the memory that a body takes until it has been parsed. */
export function heldBytes(req: IncomingMessage): BodySize {
  const bytes = Number(req.headers['content-length'] ?? unknownLength)
  return { kept: copies * bytes, whileRead: bytes > preallocateAbove ? copiesWhileRead * bytes : 0 }
}

/** Returns the bytes that a body takes once it has been parsed. */
export const heldAfterReading = (bytes: number): number => copies * bytes
