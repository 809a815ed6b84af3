import { z } from 'zod'
import { Failure } from '../../core/failure.ts'
import { isUnavailable } from '../../core/files/files.ts'
import type { FileRecord } from '../../core/store/store.ts'
import type { Call } from '../call.ts'
import type { Owners } from '../owners.ts'
import { route } from '../route.ts'
import { noneMatch, rangeApplies, rangeOf } from './range.ts'
import { refuseRepeated } from './repeated.ts'
import { piecesOf, sendPieces } from './send-pieces.ts'
import { joinParts, receivePart, receiveUpload, UploadedFile, UploadedPart, UploadParts } from './upload.ts'

const tag = 'Files'
const path = '/files/:id/:name'
const params = z.object({ id: z.string(), name: z.string().describe('Any: it is for whoever saves the file.') })
const query = z.object({ exp: z.string(), sig: z.string() })
const uploadQuery = query.extend({ org: z.string(), type: z.string(), kept: z.string() })

/** Whoever has the address may read it, so a page of any origin may. */
const open = (call: Call) =>
  call
    .header('access-control-allow-origin', '*')
    .header('access-control-expose-headers', 'accept-ranges, content-length, content-range, etag')

/** A name for any client: plain ASCII for the oldest, RFC 8187 for the others. */
export function disposition(name: string): string {
  const plain = name.replace(/[^A-Za-z0-9._ -]/g, '_')
  const exact = encodeURIComponent(name).replace(/['()*]/g, sign => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`)
  return `inline; filename="${plain}"; filename*=UTF-8''${exact}`
}

/** Seconds until the address or the file ends. */
const maxAge = (file: FileRecord, expires: number, now = Date.now()): number =>
  Math.max(0, Math.floor((Math.min(expires * 1000, file.expiresAt ?? Infinity) - now) / 1000))

async function read(call: Call, { files, log }: Pick<Owners, 'files' | 'log'>): Promise<void> {
  open(call)
  const { req, res, query } = call
  refuseRepeated(query)
  const id = call.params.id ?? ''
  if (!files.verify(id, query.get('exp') ?? '', query.get('sig') ?? ''))
    throw new Failure(
      'invalid_signature',
      'This address is not one that was given out here, or it has ended. Read the job again for a new one.',
    )
  const file = await files.ofAddress(id)
  if (!file) throw new Failure('not_found', `The file ${id} was not found.`)
  if (isUnavailable(file)) throw new Failure('output_expired', `The file ${id} was removed, or its time was over.`)
  const etag = `"${file.sha256}"`
  const head = (status: number, more: string[] = []) =>
    call.head(status, file.contentType, [
      'etag',
      etag,
      'accept-ranges',
      'bytes',
      'cache-control',
      `private, max-age=${maxAge(file, Number(query.get('exp')))}`,
      'content-disposition',
      disposition(file.name),
      'content-security-policy',
      "default-src 'none'; sandbox",
      'cross-origin-resource-policy',
      'cross-origin',
      'referrer-policy',
      'no-referrer',
      ...more,
    ])
  if (noneMatch(req.headers['if-none-match'], etag)) {
    head(304)
    return void res.end()
  }
  const ifRange = req.headers['if-range']
  const asked =
    req.method === 'GET' && rangeApplies(typeof ifRange === 'string' ? ifRange : undefined, etag)
      ? rangeOf(req.headers.range, file.bytes)
      : undefined
  if (asked === 'unsatisfiable') {
    head(416, ['content-range', `bytes */${file.bytes}`, 'content-length', '0'])
    return void res.end()
  }
  const handle = await files.open(file)
  if (!handle) {
    log.error('The bytes of a file are missing or not as they were written', { file: id })
    throw new Failure('not_found', `The file ${id} was not found.`)
  }
  await using _ = handle
  const range = asked ?? { first: 0, last: file.bytes - 1 }
  const length = ['content-length', String(range.last - range.first + 1)]
  if (asked) head(206, ['content-range', `bytes ${range.first}-${range.last}/${file.bytes}`, ...length])
  else head(200, length)
  if (req.method === 'HEAD') return void res.end()
  await sendPieces(call, piecesOf(call, handle, range))
}

/** What a browser asks before a page of another origin may send a file. */
const preflight = (of: `/${string}`, parameters: z.ZodType) =>
  route({
    method: 'OPTIONS',
    path: of,
    scope: 'public',
    tag,
    params: parameters,
    summary: 'Tells a browser that pages of any origin may read and send files',
    status: 204,
    answer(call) {
      open(call).head(204, 'text/plain', [
        'access-control-allow-methods',
        'GET, HEAD, PUT, POST',
        'access-control-allow-headers',
        'content-type, if-none-match, if-range, range',
        'access-control-max-age',
        '86400',
      ])
      call.res.end()
    },
  })

/** Files by their signed addresses. No token: the signature is the right to read, or to send. */
export const fileRoutes = (owners: Pick<Owners, 'config' | 'files' | 'log'>) => [
  route({
    method: 'GET',
    path,
    scope: 'public',
    tag,
    params,
    query,
    summary: 'Read a file by the address that a result gave',
    description:
      'The signature in the address is what counts; it ends after a day unless the server is set otherwise. One `Range` is answered with 206, `If-None-Match` with 304. 403 `invalid_signature` for a wrong or ended address, 410 `output_expired` for a file that was removed.',
    answer: call => read(call, owners),
  }),
  route({
    method: 'PUT',
    path,
    scope: 'public',
    bucket: 'api',
    tag,
    params,
    query: uploadQuery,
    summary: 'Send the bytes of a file to the address that was given for it',
    description: 'Once, as they are. The address says what the file is; it ends after an hour.',
    response: UploadedFile,
    answer: call => receiveUpload(open(call), owners),
  }),
  route({
    method: 'PUT',
    path: `${path}/:part`,
    scope: 'public',
    bucket: 'api',
    tag,
    params: params.extend({ part: z.string() }),
    query: uploadQuery,
    summary: 'Send one part of a large file',
    description:
      'The parts are numbered from 1 and may come in any order, each behind the name in the address of the upload.',
    response: UploadedPart,
    answer: call => receivePart(open(call), owners),
  }),
  route({
    method: 'POST',
    path: `${path}/complete`,
    scope: 'public',
    bucket: 'api',
    tag,
    params,
    query: uploadQuery,
    summary: 'Put the parts of a large file together',
    body: UploadParts,
    example: { parts: [{ partNumber: 1 }, { partNumber: 2 }] },
    response: UploadedFile,
    answer: call => joinParts(open(call), owners),
  }),
  preflight(path, params),
  preflight(`${path}/:part`, params.extend({ part: z.string() })),
]
