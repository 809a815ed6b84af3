import { createReadStream } from 'node:fs'
import { z } from 'zod'
import { invalid } from '../../../core/failure.ts'
import { isUnavailable } from '../../../core/files/api-files.ts'
import {
  anyObject,
  array,
  integer,
  namedObject,
  nullableString,
  object,
  optionalStringUpTo,
  string,
} from '../../../core/schemas/fields.ts'
import type { FileRecord } from '../../../core/store/store.ts'
import { readForm } from '../../http/body/multipart.ts'
import { found } from '../../http/request/errors.ts'
import type { ClientExchange } from '../../http/request/exchange.ts'
import type { Owners } from '../../http/request/owners.ts'
import { replicateRoute } from './view.ts'

const FileObject = namedObject('ReplicateFile', "A file in Replicate's form.", {
  id: string('Id of the file: `file-…`.'),
  name: string('Name of the file.'),
  content_type: string('Media type.'),
  size: integer('Size in bytes.'),
  etag: string('SHA-256 of the bytes, hexadecimal.'),
  checksums: object('Checksums.', { sha256: string('SHA-256 of the bytes, hexadecimal.') }),
  metadata: anyObject('Always empty.'),
  created_at: string('ISO 8601, UTC.'),
  expires_at: nullableString('When it is removed, ISO 8601; null if it is kept.'),
  urls: object('Addresses.', { get: string('Where to read the bytes. Signed: it needs no token.') }),
})
const FilePage = namedObject('ReplicateFiles', 'A page of files.', {
  previous: z.null().describe('Always null.'),
  next: nullableString('URL of the next page; null on the last one.'),
  results: array('The files, newest first.', FileObject),
})
const pageSize = 100
const Upload = namedObject('ReplicateFileForm', 'A file to upload.', { content: z.file().describe('The file.') })

type FileOwners = Owners<'config' | 'files'>

const iso = (ms: number) => new Date(ms).toISOString()
const view = (
  file: FileRecord,
  { origin }: ClientExchange,
  { files }: Owners<'files'>,
): z.input<typeof FileObject> => ({
  id: file.id,
  name: file.name,
  content_type: file.contentType,
  size: file.bytes,
  etag: file.sha256,
  checksums: { sha256: file.sha256 },
  metadata: {},
  created_at: iso(file.createdAt),
  expires_at: file.expiresAt === null ? null : iso(file.expiresAt),
  urls: { get: files.link(file, origin) },
})

async function create(exchange: ClientExchange, owners: FileOwners) {
  const maxBytes = owners.config.limits.upload_size
  await using form = await readForm(exchange, { files: { content: 1, metadata: 1 }, maxBytes }, owners)
  const [content] = form.files.get('content') ?? []
  if (!content)
    throw invalid('content', "'content' is required: the file, as a part of the form.", 'missing_required_parameter')
  const keptMs = owners.config.limits.upload_retention
  const file = await owners.files.receive(exchange.caller.organizationId, createReadStream(content.path), {
    name: content.name,
    contentType: content.contentType,
    purpose: 'upload',
    expiresAt: keptMs === 0 ? null : { keptMs },
    maxBytes,
    declaredBytes: content.bytes,
  })
  exchange.send(201, JSON.stringify(view(file, exchange, owners)))
}

async function find(id: string, exchange: ClientExchange, { files }: Owners<'files'>) {
  const file = await files.find(exchange.caller.organizationId, id)
  return found(file?.purpose === 'upload' && !isUnavailable(file) && file, 'The file', id)
}

const One = z.object({ id: string('Id of the file.') })

export const replicateFileRoutes = (owners: FileOwners) => [
  replicateRoute('POST /replicate/v1/files', 'user:write', {
    bucket: 'api',
    summary: 'Upload file',
    description: 'Stores a file. `urls.get` can be an input of any prediction.',
    form: Upload,
    response: FileObject,
    status: 201,
    errorCodes: ['payload_too_large', 'storage_full', 'disk_full', 'rate_limit'],
    answer: exchange => create(exchange, owners),
  }),
  replicateRoute('GET /replicate/v1/files', 'user:read', {
    summary: 'List files',
    description: 'Returns the files that were uploaded, newest first.',
    query: z.object({ cursor: optionalStringUpTo(64, 'From `next`. Default: the first page.') }),
    response: FilePage,
    handle: async ({ query }, exchange) => {
      const after = query.cursor === undefined ? {} : { after: query.cursor }
      const { organizationId } = exchange.caller
      const page = await owners.files.list(organizationId, { limit: pageSize + 1, purpose: 'upload', ...after })
      const shown = page.slice(0, pageSize)
      const next = page.length > pageSize ? `${exchange.origin}/replicate/v1/files?cursor=${shown.at(-1)!.id}` : null
      const results = shown.filter(file => !isUnavailable(file)).map(file => view(file, exchange, owners))
      return { previous: null, next, results }
    },
  }),
  replicateRoute('GET /replicate/v1/files/:id', 'user:read', {
    summary: 'Get file',
    description: 'Returns a file that was uploaded.',
    errorCodes: ['not_found'],
    params: One,
    response: FileObject,
    handle: async ({ params }, exchange) => view(await find(params.id, exchange, owners), exchange, owners),
  }),
  replicateRoute('DELETE /replicate/v1/files/:id', 'user:write', {
    summary: 'Delete file',
    description: 'Removes a file that was uploaded.',
    status: 204,
    errorCodes: ['not_found'],
    params: One,
    answer: async exchange => {
      const { id } = await find(exchange.params.id ?? '', exchange, owners)
      await owners.files.remove(exchange.caller.organizationId, id)
      exchange.head(204, 'application/json')
      exchange.res.end()
    },
  }),
]
