import { z } from 'zod'
import { Failure } from '../../../core/failure.ts'
import { isUnavailable } from '../../../core/files/api-files.ts'
import { string } from '../../../core/schemas/fields.ts'
import type { FileRecord } from '../../../core/store/store.ts'
import { fileAnswers, sendFile } from '../../http/answer/send-file.ts'
import {
  joinParts,
  receivePart,
  receiveUpload,
  UploadedFile,
  UploadedPart,
  UploadParts,
} from '../../http/body/upload.ts'
import { errorGroups } from '../../http/request/errors.ts'
import type { ClientExchange } from '../../http/request/exchange.ts'
import type { Owners } from '../../http/request/owners.ts'
import { refuseRepeated } from '../../http/request/query.ts'
import { routeOf } from '../../http/request/route.ts'

const route = routeOf({ tag: 'Files' })
const path = '/files/:id/:name'
const params = z.object({
  id: string('Id of the file: `file-…`.'),
  name: string('Name of the file. For a read any name works.'),
})
const query = z.object({
  exp: string('Unix seconds at which the address expires.'),
  sig: string('Signature of the address.'),
})
const uploadQuery = query.extend({
  org: string('Id of the organization that owns the file.'),
  type: string('Media type of the file.'),
  kept: string('Milliseconds for which the file is kept; empty for no limit.'),
})
const part = string('Number of the part, from 1.')

/** Allows pages of any origin: anyone who has the signed URL may use it. */
const open = (exchange: ClientExchange) =>
  exchange
    .header('access-control-allow-origin', '*')
    .header('access-control-expose-headers', 'accept-ranges, content-length, content-range, etag')

/** Returns the seconds until the URL or the file expires. */
const secondsLeft = (file: FileRecord, expires: number, now = Date.now()) =>
  Math.max(0, Math.floor((Math.min(expires * 1000, file.expiresAt ?? Infinity) - now) / 1000))

async function read(exchange: ClientExchange, { files, log }: Owners<'files' | 'log'>) {
  open(exchange)
  const { query } = exchange
  refuseRepeated(query)
  const id = exchange.params.id ?? ''
  if (!files.verify(id, query.get('exp') ?? '', query.get('sig') ?? ''))
    throw new Failure(
      'invalid_signature',
      'The signature of this URL is invalid or has expired. Read the job again for a new URL.',
    )
  const file = await files.ofAddress(id)
  if (!file) throw new Failure('not_found', `The file ${id} was not found.`)
  if (isUnavailable(file)) throw new Failure('output_expired', `The file ${id} was deleted, or its retention is over.`)
  const more = ['cross-origin-resource-policy', 'cross-origin', 'referrer-policy', 'no-referrer']
  const maxAge = secondsLeft(file, Number(query.get('exp')))
  await sendFile(exchange, file, { kind: 'inline', maxAge, more }, { files, log })
}

/** Returns the route that answers preflights, so that pages of other origins may send files. */
const preflight = (of: `/${string}`, parameters: z.ZodType) =>
  route(`OPTIONS ${of}`, 'public', {
    params: parameters,
    summary: 'Allow cross-origin access',
    description: 'Answers the preflight of a browser: pages of any origin may read and send files by signed addresses.',
    status: 204,
    answer(exchange) {
      open(exchange).head(204, 'text/plain', [
        'access-control-allow-methods',
        'GET, HEAD, PUT, POST',
        'access-control-allow-headers',
        'content-type, if-none-match, if-range, range',
        'access-control-max-age',
        '86400',
      ])
      exchange.res.end()
    },
  })

/** The routes of files by signed URLs. They need no token: the signature grants reading or sending. */
export const fileRoutes = (owners: Owners<'config' | 'files' | 'log'>) => [
  route(`GET ${path}`, 'public', {
    params,
    query,
    summary: 'Download file',
    description:
      'Returns the bytes of a file by the signed address in a result. The address works for a day unless the server is set otherwise: read the job again for a new one. One `Range` is answered with 206, `If-None-Match` with 304.',
    media: ['*/*'],
    otherAnswers: fileAnswers,
    errorCodes: [...errorGroups.signed, 'not_found', 'output_expired'],
    answer: exchange => read(exchange, owners),
  }),
  route(`PUT ${path}`, 'public', {
    bucket: 'api',
    params,
    query: uploadQuery,
    summary: 'Upload file to URL',
    description: 'Stores the body as the file of a signed upload address. The address works once, for an hour.',
    rawBody: '*/*',
    errorCodes: [...errorGroups.signed, ...errorGroups.upload],
    response: UploadedFile,
    answer: exchange => receiveUpload(open(exchange), owners),
  }),
  route(`PUT ${path}/:part`, 'public', {
    bucket: 'api',
    params: params.extend({ part }),
    query: uploadQuery,
    summary: 'Upload part of file',
    description: 'Stores the body as one part of a file. Parts are numbered from 1 and may be sent in any order.',
    rawBody: '*/*',
    errorCodes: [...errorGroups.signed, ...errorGroups.upload],
    response: UploadedPart,
    answer: exchange => receivePart(open(exchange), owners),
  }),
  route(`POST ${path}/complete`, 'public', {
    bucket: 'api',
    params,
    query: uploadQuery,
    summary: 'Complete upload in parts',
    description: 'Joins uploaded parts into the file of a signed upload address.',
    errorCodes: [...errorGroups.signed, 'conflict', 'storage_full', 'rate_limit', 'disk_full'],
    body: UploadParts,
    example: { parts: [{ partNumber: 1 }, { partNumber: 2 }] },
    response: UploadedFile,
    answer: exchange => joinParts(open(exchange), owners),
  }),
  preflight(path, params),
  preflight(`${path}/:part`, params.extend({ part })),
]
