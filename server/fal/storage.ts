import { z } from 'zod'
import { Failure } from '../../core/failure.ts'
import { credentialOf } from '../auth.ts'
import type { Call } from '../call.ts'
import { storeUpload } from '../files/upload.ts'
import type { Owners } from '../owners.ts'
import { route } from '../route.ts'
import { falErrors } from './errors.ts'
import { readableAddress, uploadIdOf } from './parts.ts'
import { lifetimeOf } from './upload.ts'

const tokenMs = 3_600_000
const tag = 'fal'

const FalStorageToken = z
  .object({
    token: z.string().describe('Stores files of this organization for an hour, and does nothing else.'),
    token_type: z.literal('Bearer'),
    base_url: z.string(),
    expires_at: z.string().describe('ISO 8601, in UTC.'),
  })
  .meta({ id: 'FalStorageToken' })
const FalStored = z.object({ access_url: z.string() }).meta({ id: 'FalStored' })
const FalMultipart = z.object({ access_url: z.string(), uploadId: z.string() }).meta({ id: 'FalMultipart' })

type StorageOwners = Pick<Owners, 'config' | 'files'>

/** What the headers say about the file that will be. Throws Failure `invalid_api_key`, `invalid_value`. */
function describedUpload(call: Call, { config, files }: StorageOwners) {
  const { headers } = call.req
  const organizationId = files.mayStore(credentialOf(headers) ?? '')
  if (organizationId === undefined)
    throw new Failure(
      'invalid_api_key',
      'The token of the storage is wrong or has expired. Get another one at /fal/rest/storage/auth/token.',
    )
  const usual = config.limits.upload_retention
  const name = headers['x-fal-file-name']
  return {
    organizationId,
    name: typeof name === 'string' ? name : 'upload.bin',
    contentType: headers['content-type'] ?? 'application/octet-stream',
    keptMs: lifetimeOf(headers['x-fal-object-lifecycle']) ?? (usual === 0 ? null : usual),
  }
}

const facts = { method: 'POST', scope: 'public', bucket: 'api', tag, errors: falErrors } as const

/** The storage to which fal's Python client sends files: its `rest.fal.ai` and `v3.fal.media`. */
export const falStorageRoutes = (owners: StorageOwners) => [
  route({
    ...facts,
    path: '/fal/rest/storage/auth/token',
    scope: 'user:write',
    summary: 'Get a token of the storage',
    description: 'It is sent as `Authorization: Bearer …` to `/fal/cdn/files/upload`.',
    response: FalStorageToken,
    handle(_input, call) {
      const expires = Math.floor((Date.now() + tokenMs) / 1000)
      return {
        token: owners.files.storageToken(call.caller.organizationId, expires),
        token_type: 'Bearer' as const,
        base_url: `${call.origin}/fal/cdn`,
        // Python before 3.11 reads no Z.
        expires_at: new Date(expires * 1000).toISOString().replace(/\.000Z$/, '+00:00'),
      }
    },
  }),
  route({
    ...facts,
    path: '/fal/cdn/files/upload',
    summary: 'Store a file',
    description:
      'The raw body becomes the file, with the content type of the request and the name in `X-Fal-File-Name`. `access_url` can be an input of any request. Needs a token of the storage. The file is kept for seven days unless `X-Fal-Object-Lifecycle` says otherwise.',
    response: FalStored,
    async answer(call) {
      const described = describedUpload(call, owners)
      const { id, name, readUrl } = owners.files.uploadLink(described, call.origin)
      await storeUpload(call, { ...described, id, name }, owners)
      call.send(200, JSON.stringify({ access_url: readUrl }))
    },
  }),
  route({
    ...facts,
    path: '/fal/cdn/files/upload/multipart',
    summary: 'Begin to store a large file in parts',
    description:
      'PUT each part to `<access_url>/multipart/<uploadId>/<number>`, then POST their numbers and etags to `<access_url>/multipart/<uploadId>/complete`.',
    response: FalMultipart,
    answer(call) {
      const { url, readUrl } = owners.files.uploadLink(describedUpload(call, owners), call.origin)
      call.send(200, JSON.stringify({ access_url: readableAddress(readUrl), uploadId: uploadIdOf(url) }))
    },
  }),
]
