import { z } from 'zod'
import { Failure, invalid } from '../../../core/failure.ts'
import { namedObject, string } from '../../../core/schemas/fields.ts'
import { credentialOf } from '../../http/access/auth.ts'
import { storeUpload } from '../../http/body/upload.ts'
import { errorGroups } from '../../http/request/errors.ts'
import type { ClientExchange } from '../../http/request/exchange.ts'
import type { Owners } from '../../http/request/owners.ts'
import { lifetimeIn, tenYears } from '../../work/job-terms.ts'
import { readableAddress, uploadIdOf } from './addresses.ts'
import { falRoute } from './errors.ts'

const FalUpload = namedObject('FalUpload', 'A file to upload.', {
  content_type: z.string().max(256).default('application/octet-stream').describe('Media type of the file.'),
  file_name: z.string().max(1024).describe('Name of the file.'),
})
const FalUploadUrls = namedObject('FalUploadUrls', 'Addresses for an upload.', {
  upload_url: string('Where to PUT the bytes, within an hour. Signed: it needs no token.'),
  file_url: string('Where to read the file afterwards. Signed: it needs no token.'),
})

const header = 'X-Fal-Object-Lifecycle'

/** Returns the requested lifetime of the file in milliseconds; undefined if none is requested. */
function lifetimeOf(given: string | string[] | undefined) {
  const seconds = given === undefined ? undefined : lifetimeIn(header, String(given))
  if (seconds === undefined) return undefined
  if (typeof seconds !== 'number' || !(seconds >= 1 && seconds <= tenYears))
    throw invalid(header, `'${header}' must set 1 to ${tenYears} seconds.`)
  return Math.round(seconds * 1000)
}

/** Returns the upload URL and the download URL. */
function initiate(
  { content_type, file_name }: z.output<typeof FalUpload>,
  exchange: ClientExchange,
  { files, config }: Owners<'config' | 'files'>,
): z.input<typeof FalUploadUrls> {
  const retentionMs = config.limits.upload_retention
  const keptMs = lifetimeOf(exchange.req.headers['x-fal-object-lifecycle']) ?? (retentionMs === 0 ? null : retentionMs)
  const upload = { organizationId: exchange.caller.organizationId, name: file_name, contentType: content_type, keptMs }
  const { url, readUrl } = files.uploadLink(upload, exchange.origin)
  return { upload_url: url, file_url: readUrl }
}

const initiateFacts = {
  bucket: 'api',
  body: FalUpload,
  example: { content_type: 'image/png', file_name: 'cat.png' },
  response: FalUploadUrls,
} as const

/** The routes of fal's storage that return upload URLs. */
export const falUploadRoutes = (owners: Owners<'config' | 'files'>) => [
  falRoute('POST /fal/rest/storage/upload/initiate', 'user:write', {
    ...initiateFacts,
    summary: 'Create upload URL',
    description:
      'Returns a signed address for an upload. PUT the bytes to `upload_url`; afterwards `file_url` can be an input of any request. The file is kept for seven days unless `X-Fal-Object-Lifecycle` sets another time.',
    handle: ({ body }, exchange) => initiate(body, exchange, owners),
  }),
  falRoute('POST /fal/rest/storage/upload/initiate-multipart', 'user:write', {
    ...initiateFacts,
    summary: 'Create upload URL for parts',
    description:
      'Returns a signed address for an upload in parts. PUT each part to `upload_url` with `/<number>` after the path, then POST their list to `upload_url` with `/complete` there.',
    handle: ({ body }, exchange) => initiate(body, exchange, owners),
  }),
]

const tokenMs = 3_600_000

const FalStorageToken = namedObject('FalStorageToken', 'A token to store files with.', {
  token: string('A token that is valid for an hour and allows only to store files of the organization.'),
  token_type: z.literal('Bearer'),
  base_url: string('Where to send files.'),
  expires_at: string('When the token expires: ISO 8601, UTC.'),
})
const access_url = string('Where to read the file. Signed: it needs no token.')
const FalStored = namedObject('FalStored', 'A file that was stored.', { access_url })
const FalMultipart = namedObject('FalMultipart', 'An upload in parts.', {
  access_url,
  uploadId: string('Id of the upload, for the paths of the parts.'),
})

type StorageOwners = Owners<'config' | 'files'>

/** Returns the description of the file in the headers. Throws Failure `invalid_api_key`, `invalid_value`. */
function describedUpload(exchange: ClientExchange, { config, files }: StorageOwners) {
  const { headers } = exchange.req
  const organizationId = files.mayStore(credentialOf(headers) ?? '')
  if (organizationId === undefined)
    throw new Failure(
      'invalid_api_key',
      'The storage token is invalid or has expired. Create one with POST /fal/rest/storage/auth/token.',
    )
  const retentionMs = config.limits.upload_retention
  const name = headers['x-fal-file-name']
  return {
    organizationId,
    name: typeof name === 'string' ? name : 'upload.bin',
    contentType: headers['content-type'] ?? 'application/octet-stream',
    keptMs: lifetimeOf(headers['x-fal-object-lifecycle']) ?? (retentionMs === 0 ? null : retentionMs),
  }
}

/** The routes of the storage to which fal's Python client uploads files: its `rest.fal.ai` and `v3.fal.media`. */
export const falStorageRoutes = (owners: StorageOwners) => [
  falRoute('POST /fal/rest/storage/auth/token', 'user:write', {
    bucket: 'api',
    summary: 'Create storage token',
    description: 'Returns a token for uploads. Send it as `Authorization: Bearer …` to `/fal/cdn/files/upload`.',
    response: FalStorageToken,
    handle(_input, exchange) {
      const expires = Math.floor((Date.now() + tokenMs) / 1000)
      return {
        token: owners.files.storageToken(exchange.caller.organizationId, expires),
        token_type: 'Bearer' as const,
        base_url: `${exchange.origin}/fal/cdn`,
        // Python before 3.11 cannot parse `Z`.
        expires_at: new Date(expires * 1000).toISOString().replace(/\.000Z$/, '+00:00'),
      }
    },
  }),
  falRoute('POST /fal/cdn/files/upload', 'public', {
    bucket: 'api',
    summary: 'Upload file',
    description:
      'Stores the body as a file, with the content type of the request and the name in `X-Fal-File-Name`. `access_url` can be an input of any request. Needs a storage token. The file is kept for seven days unless `X-Fal-Object-Lifecycle` sets another time.',
    rawBody: 'application/octet-stream',
    errorCodes: ['invalid_api_key', 'invalid_value', ...errorGroups.upload],
    response: FalStored,
    async answer(exchange) {
      const described = describedUpload(exchange, owners)
      const { id, name, readUrl } = owners.files.uploadLink(described, exchange.origin)
      await storeUpload(exchange, { ...described, id, name }, owners)
      exchange.send(200, JSON.stringify({ access_url: readUrl }))
    },
  }),
  falRoute('POST /fal/cdn/files/upload/multipart', 'public', {
    bucket: 'api',
    summary: 'Start upload in parts',
    description:
      'Starts the upload of a large file. PUT each part to `<access_url>/multipart/<uploadId>/<number>`, then POST their numbers and etags to `<access_url>/multipart/<uploadId>/complete`. Needs a storage token.',
    errorCodes: ['invalid_api_key', 'invalid_value'],
    response: FalMultipart,
    answer(exchange) {
      const { url, readUrl } = owners.files.uploadLink(describedUpload(exchange, owners), exchange.origin)
      exchange.send(200, JSON.stringify({ access_url: readableAddress(readUrl), uploadId: uploadIdOf(url) }))
    },
  }),
]
