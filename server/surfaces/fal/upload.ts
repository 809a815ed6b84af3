import { z } from 'zod'
import { invalidValue } from '../../../core/invalid-value.ts'
import { namedObject, string } from '../../../core/schemas/fields.ts'
import type { Call } from '../../http/request/call.ts'
import type { Owners } from '../../http/request/owners.ts'
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
const tenYears = 3_650 * 86_400

/** Returns the requested lifetime of the file in milliseconds; undefined if none is requested. */
export function lifetimeOf(given: string | string[] | undefined): number | undefined {
  if (given === undefined) return undefined
  let lifecycle: { expiration_duration_seconds?: unknown } | null
  try {
    lifecycle = JSON.parse(String(given)) as typeof lifecycle
  } catch {
    throw invalidValue(header, `'${header}' must be JSON such as {"expiration_duration_seconds":3600}.`)
  }
  const seconds = lifecycle?.expiration_duration_seconds
  if (seconds == null) return undefined
  if (typeof seconds !== 'number' || !(seconds >= 1 && seconds <= tenYears))
    throw invalidValue(header, `'${header}' must set 1 to ${tenYears} seconds.`)
  return Math.round(seconds * 1000)
}

/** Returns the upload URL and the download URL. */
function initiate(
  { content_type, file_name }: z.output<typeof FalUpload>,
  call: Call,
  { files, config }: Pick<Owners, 'config' | 'files'>,
): z.input<typeof FalUploadUrls> {
  const retentionMs = config.limits.upload_retention
  const keptMs = lifetimeOf(call.req.headers['x-fal-object-lifecycle']) ?? (retentionMs === 0 ? null : retentionMs)
  const upload = { organizationId: call.caller.organizationId, name: file_name, contentType: content_type, keptMs }
  const { url, readUrl } = files.uploadLink(upload, call.origin)
  return { upload_url: url, file_url: readUrl }
}

const facts = {
  bucket: 'api',
  body: FalUpload,
  example: { content_type: 'image/png', file_name: 'cat.png' },
  response: FalUploadUrls,
} as const

/** The routes of fal's storage that return upload URLs. */
export const falUploadRoutes = (owners: Pick<Owners, 'config' | 'files'>) => [
  falRoute('POST /fal/rest/storage/upload/initiate', 'user:write', {
    ...facts,
    summary: 'Create upload URL',
    description:
      'Returns a signed address for an upload. PUT the bytes to `upload_url`; afterwards `file_url` can be an input of any request. The file is kept for seven days unless `X-Fal-Object-Lifecycle` sets another time.',
    handle: ({ body }, call) => initiate(body, call, owners),
  }),
  falRoute('POST /fal/rest/storage/upload/initiate-multipart', 'user:write', {
    ...facts,
    summary: 'Create upload URL for parts',
    description:
      'Returns a signed address for an upload in parts. PUT each part to `upload_url` with `/<number>` after the path, then POST their list to `upload_url` with `/complete` there.',
    handle: ({ body }, call) => initiate(body, call, owners),
  }),
]
