import { z } from 'zod'
import { invalid } from '../../../core/failure.ts'
import { maxPartBytes, maxUploadBytes, type UploadRecord } from '../../../core/files/uploads.ts'
import { integer, namedObject, nullish, oneOf, optional, string } from '../../../core/schemas/fields.ts'
import { readForm } from '../../http/body/multipart.ts'
import type { Owners } from '../../http/request/owners.ts'
import { routeOf } from '../../http/request/route.ts'
import { seconds, viewOf } from '../../views/view-of.ts'
import { expiresAfterField, FileObject, fileObject, keptMsOf, purposeField, uploadedType } from './files.ts'

const route = routeOf({ tag: 'Stored files' })
const base = '/std/v1/uploads'
const params = z.object({ id: string('Id of the upload: `upload_…`.') })

const UploadCreate = namedObject('UploadCreate', 'A file that will be uploaded in parts.', {
  bytes: z.int().min(1).max(maxUploadBytes).describe('Size of the whole file in bytes, 8 GiB at most.'),
  filename: z.string().min(1).max(512).describe('Name of the file.'),
  mime_type: z.string().max(256).describe('Media type of the file.'),
  purpose: purposeField,
  expires_after: expiresAfterField,
})

const UploadPartForm = namedObject('UploadPartForm', 'A part of a file.', {
  data: z.file().meta({ description: 'The bytes of the part, 64 MiB at most.' }),
})

const UploadComplete = namedObject('UploadComplete', 'The parts of a file.', {
  part_ids: z.array(z.string()).min(1).max(10_000).describe('Ids of the parts, in the order of their bytes.'),
  md5: nullish(
    z.string().regex(/^[0-9a-f]{32}$/i, 'must be an MD5 checksum: 32 hexadecimal digits.'),
    'MD5 checksum of the whole file, hexadecimal. Default: not compared.',
  ),
})

const Upload = namedObject('Upload', 'A file that is uploaded in parts.', {
  id: string('Id of the upload: `upload_…`.'),
  object: z.literal('upload').describe('Always `upload`.'),
  bytes: integer('Size of the whole file in bytes.'),
  created_at: integer('When the upload was created, Unix seconds.'),
  expires_at: integer('Until when the upload can be completed, Unix seconds.'),
  filename: string('Name of the file.'),
  purpose: string('What the file is for.'),
  status: oneOf('State of the upload.', ['pending', 'completed', 'cancelled', 'expired']),
  file: optional(FileObject, 'The file, once the upload is completed.'),
})

const UploadPart = namedObject('UploadPart', 'A part of an upload.', {
  id: string('Id of the part: `part_…`.'),
  object: z.literal('upload.part').describe('Always `upload.part`.'),
  created_at: integer('When the part was stored, Unix seconds.'),
  upload_id: string('Id of the upload.'),
})

const uploadObject = (upload: UploadRecord) =>
  viewOf(Upload, upload, { filename: upload.name, file: upload.file ? fileObject(upload.file) : undefined })

const ofUpload = ['not_found', 'conflict'] as const

export const uploadRoutes = (owners: Owners<'config' | 'files'>) => {
  const { files } = owners
  return [
    route(`POST ${base}`, 'user:write', {
      bucket: 'api',
      summary: 'Create upload',
      description:
        'Begins the upload of a large file in parts. It can be completed for an hour. A restart of the server ends it; then create it again.',
      body: UploadCreate,
      example: { bytes: 1048576, filename: 'requests.jsonl', mime_type: 'application/jsonl', purpose: 'batch' },
      response: Upload,
      errorCodes: ['payload_too_large', 'storage_full', 'disk_full'],
      handle: async ({ body }, exchange) =>
        uploadObject(
          await files.uploads.create(exchange.caller.organizationId, {
            name: body.filename,
            contentType: uploadedType(body.mime_type, body.filename),
            purpose: body.purpose,
            bytes: body.bytes,
            keptMs: keptMsOf(body.purpose, body.expires_after),
          }),
        ),
    }),
    route(`POST ${base}/:id/parts`, 'user:write', {
      bucket: 'api',
      summary: 'Upload part',
      description: 'Stores a part of the file. Parts may be sent in any order and several at once.',
      params,
      form: UploadPartForm,
      response: UploadPart,
      errorCodes: [...ofUpload, 'payload_too_large', 'disk_full', 'cancelled'],
      async answer(exchange) {
        const { organizationId } = exchange.caller
        const id = exchange.params.id ?? ''
        await files.uploads.requirePending(organizationId, id)
        await using form = await readForm(exchange, { files: { data: 1 }, maxBytes: maxPartBytes }, owners)
        const [data] = form.files.get('data') ?? []
        if (!data)
          throw invalid(
            'data',
            "Send the bytes of the part as a file in the field 'data'.",
            'missing_required_parameter',
          )
        const part = await files.uploads.addPart(organizationId, id, data)
        const answer: z.input<typeof UploadPart> = {
          id: part.id,
          object: 'upload.part',
          created_at: seconds(part.createdAt),
          upload_id: id,
        }
        exchange.send(200, JSON.stringify(answer))
      },
    }),
    route(`POST ${base}/:id/complete`, 'user:write', {
      bucket: 'api',
      summary: 'Complete upload',
      description: 'Joins the parts in the order of `part_ids` into a file, which is in the answer as `file`.',
      params,
      body: UploadComplete,
      example: { part_ids: ['part_01K8Q6Z4M3T8V9W0X1Y2Z3A4B5'] },
      response: Upload,
      errorCodes: [...ofUpload, 'storage_full', 'disk_full'],
      handle: async ({ params: { id }, body }, exchange) =>
        uploadObject(
          await files.uploads.complete(exchange.caller.organizationId, id, body.part_ids, body.md5 ?? undefined),
        ),
    }),
    route(`POST ${base}/:id/cancel`, 'user:write', {
      bucket: 'api',
      summary: 'Cancel upload',
      description: 'Ends an upload and deletes its parts.',
      params,
      response: Upload,
      errorCodes: [...ofUpload],
      handle: async ({ params: { id } }, exchange) =>
        uploadObject(await files.uploads.cancel(exchange.caller.organizationId, id)),
    }),
  ]
}
