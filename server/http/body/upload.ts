import type { IncomingMessage } from 'node:http'
import { z } from 'zod'
import { Failure } from '../../../core/failure.ts'
import type { Upload } from '../../../core/files/address.ts'
import { parseBoundedJson } from '../../../core/json.ts'
import { integer, namedObject, optionalString, string } from '../../../core/schemas/fields.ts'
import { parsed } from '../../../core/schemas/issues.ts'
import type { FileRecord } from '../../../core/store/store.ts'
import type { ClientExchange } from '../request/exchange.ts'
import type { Owners } from '../request/owners.ts'
import { refuseRepeated } from '../request/query.ts'
import { readBody, tooLarge } from './body.ts'
import { askForBody } from './unread-body.ts'

export const UploadedFile = namedObject('UploadedFile', 'A file that was uploaded.', {
  id: string('Id of the file: `file-…`. It can be an input of any request.'),
  name: string('Name of the file.'),
  content_type: string('Media type of the file.'),
  bytes: integer('Size in bytes.'),
  sha256: string('SHA-256 of the bytes, hexadecimal.'),
})
const partNumber = integer('Number of the part, from 1.')
export const UploadedPart = namedObject('UploadedPart', 'A part that was uploaded.', {
  partNumber,
  etag: string('Checksum of the part.'),
})
export const UploadParts = namedObject('UploadParts', 'Parts of a file to join.', {
  parts: z
    .array(
      z.object({
        partNumber,
        etag: optionalString('Checksum from the answer for the part. Default: not compared.'),
      }),
    )
    .min(1)
    .max(10_000)
    .describe('The parts, 1 to 10000. They are joined by their numbers.'),
})

type UploadOwners = Owners<'config' | 'files'>

/** Returns the upload that the signed URL allows. Throws Failure `invalid_signature`. */
function allowed({ params, query }: ClientExchange, { files }: UploadOwners) {
  refuseRepeated(query)
  const upload = files.verifyUpload(params.id ?? '', params.name ?? '', query)
  if (upload) return upload
  throw new Failure(
    'invalid_signature',
    'The signature of this upload URL is invalid or has expired. Request a new URL.',
  )
}

const factsOf = (upload: Upload, maxBytes: number) => ({
  id: upload.id,
  name: upload.name,
  contentType: upload.contentType,
  purpose: 'upload' as const,
  expiresAt: { keptMs: upload.keptMs },
  maxBytes,
})

/** Yields the chunks of the raw body. The request stays open, so that clients can read a refusal. */
async function* chunksOf(req: IncomingMessage): AsyncIterable<Uint8Array> {
  askForBody(req)
  yield* req.iterator({ destroyOnReturn: false }) as AsyncIterable<Uint8Array>
}

/** Passes the raw body of the request to `receive`. */
async function receiveBody<T>(
  exchange: ClientExchange,
  maxBytes: number,
  receive: (body: AsyncIterable<Uint8Array>) => Promise<T>,
): Promise<T> {
  const { req } = exchange
  try {
    if (Number(req.headers['content-length'] ?? 0) > maxBytes) throw tooLarge('The file is', maxBytes)
    return await receive(chunksOf(req))
  } catch (thrown) {
    if (exchange.disconnected) throw new Failure('cancelled', 'The client disconnected before the file was complete.')
    throw thrown
  }
}

/** Stores the raw body of a request as the file. Throws Failure `payload_too_large`, `conflict`, `disk_full`. */
export function storeUpload(exchange: ClientExchange, upload: Upload, { files, config }: UploadOwners) {
  const facts = factsOf(upload, config.limits.upload_size)
  const declaredBytes = Number(exchange.req.headers['content-length'] ?? 1)
  return receiveBody(exchange, facts.maxBytes, body =>
    files.receive(upload.organizationId, body, { ...facts, declaredBytes }),
  )
}

function answer(exchange: ClientExchange, { id, name, contentType, bytes, sha256 }: FileRecord) {
  const file: z.input<typeof UploadedFile> = { id, name, content_type: contentType, bytes, sha256 }
  exchange.send(200, JSON.stringify(file))
}

/** Stores the raw body of a PUT to a signed URL as the file. */
export async function receiveUpload(exchange: ClientExchange, owners: UploadOwners): Promise<void> {
  answer(exchange, await storeUpload(exchange, allowed(exchange, owners), owners))
}

/** Stores the raw body of a PUT as a part of the file. */
export async function receivePart(exchange: ClientExchange, owners: UploadOwners): Promise<void> {
  const { files, config } = owners
  const { id } = allowed(exchange, owners)
  const partNumber = /^\d{1,5}$/.test(exchange.params.part ?? '') ? Number(exchange.params.part) : 0
  const maxBytes = config.limits.upload_size
  const etag = await receiveBody(exchange, maxBytes, body => files.part(id, partNumber, body, maxBytes))
  const part: z.input<typeof UploadedPart> = { partNumber, etag }
  exchange.header('etag', `"${etag}"`).send(200, JSON.stringify(part))
}

/** Joins the listed parts, in the order of their numbers, into the file. */
export async function joinParts(exchange: ClientExchange, owners: UploadOwners): Promise<void> {
  const { files, config } = owners
  const { limits } = config
  const upload = allowed(exchange, owners)
  const body = parsed(UploadParts, parseBoundedJson(await readBody(exchange.req, limits.json_body), limits))
  // Clients that send parts concurrently list them in the order of completion.
  const named = body.parts.toSorted((a, b) => a.partNumber - b.partNumber)
  const parts = named.map(({ partNumber, etag }) => ({
    number: partNumber,
    // Clients send the quoted `etag` header of the part, or the member of its body.
    etag: etag?.replace(/^"(.*)"$/, '$1'),
  }))
  answer(exchange, await files.join(upload.organizationId, parts, factsOf(upload, limits.upload_size)))
}
