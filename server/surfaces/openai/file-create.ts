import { createReadStream } from 'node:fs'
import { z } from 'zod'
import { Failure } from '../../../core/failure.ts'
import { failureOfIssues } from '../../../core/schemas/issues.ts'
import type { FileRecord } from '../../../core/store/store.ts'
import { formValues } from '../../http/body/form-values.ts'
import { readJson } from '../../http/body/json-body.ts'
import { isForm, readForm } from '../../http/body/multipart.ts'
import type { Call } from '../../http/request/call.ts'
import type { Owners } from '../../http/request/owners.ts'
import { expiresAfterField, keptMsOf, purposeField, uploadedType } from './file-object.ts'

const fields = { purpose: purposeField, expires_after: expiresAfterField }

/** A file to upload, as a form. Instead of `file` it may have a `url`. */
export const FileForm = z
  .object({ ...fields, file: z.file().meta({ description: 'The file. Its name becomes the name of the file.' }) })
  .meta({ id: 'FileForm', description: 'A file to upload.' })

/** A file that infer fetches. */
export const FileFromUrl = z
  .object({
    ...fields,
    url: z.string().min(1).describe('Where to fetch the file: a public http(s) URL, or a `data:` URL with base64.'),
    filename: z.string().min(1).max(256).nullish().describe('Name of the file. Default: the last part of the URL.'),
  })
  .meta({ id: 'FileFromUrl', description: 'A file to fetch from a URL.' })

const Fields = z.object(fields)

type CreateOwners = Pick<Owners, 'admission' | 'config' | 'cpu' | 'files' | 'media'>

/** Bytes of a form that are not of the file; roughly, for the check before the file arrives. */
const formOverhead = 8192

function checked<T extends z.ZodType>(schema: T, value: unknown): z.output<T> {
  const read = schema.safeParse(value)
  if (read.success) return read.data
  throw failureOfIssues(read.error, value, schema)
}

/** Stores the file of a form, or the one at a URL. Throws the failures of reading and storing it. */
export async function createFile(call: Call, owners: CreateOwners): Promise<FileRecord> {
  if (!isForm(call.req)) return fetchFile(call, checked(FileFromUrl, await readJson(call, owners)), owners)
  const { files, config } = owners
  const { organizationId } = call.caller
  await files.requireRoom(organizationId, Math.max(1, Number(call.req.headers['content-length'] ?? 1) - formOverhead))
  await using form = await readForm(call, { files: { file: 1 }, maxBytes: config.limits.upload_size }, owners)
  const body = formValues(form.fields, { ...FileFromUrl.shape })
  const [file] = form.files.get('file') ?? []
  if (!file) {
    if (body.url !== undefined) return await fetchFile(call, checked(FileFromUrl, body), owners)
    throw new Failure('missing_required_parameter', "Send the file in the field 'file', or its URL in 'url'.", {
      param: 'file',
    })
  }
  const { purpose, expires_after } = checked(Fields, body)
  if (file.bytes === 0)
    throw new Failure('invalid_value', 'The file is empty. Send one with content.', { param: 'file' })
  return await files.take(organizationId, file, {
    name: file.name === '' ? 'file' : file.name,
    contentType: uploadedType(file.contentType, file.name),
    ...uploadFacts(purpose, expires_after),
  })
}

function uploadFacts(purpose: z.output<typeof purposeField>, expiresAfter: z.output<typeof expiresAfterField>) {
  const keptMs = keptMsOf(purpose, expiresAfter)
  return {
    purpose: 'upload' as const,
    apiPurpose: purpose,
    expiresAt: keptMs === null ? null : Date.now() + keptMs,
  }
}

/** The last part of the path of a URL; empty if it has none. */
function nameOfUrl(url: string): string {
  if (/^data:/i.test(url)) return ''
  const last = URL.parse(url)?.pathname.split('/').at(-1) ?? ''
  try {
    return decodeURIComponent(last)
  } catch {
    return last
  }
}

async function fetchFile(
  call: Call,
  { url, filename, purpose, expires_after }: z.output<typeof FileFromUrl>,
  { files, media, config }: CreateOwners,
): Promise<FileRecord> {
  const { organizationId } = call.caller
  await files.requireRoom(organizationId, 1)
  await using workspace = await files.workspace(call.id)
  const sender = { organizationId, origin: call.origin, signal: call.signal }
  const path = await media.download(sender, 'url', url, workspace.folder)
  const name = filename ?? (nameOfUrl(url) || 'file')
  return await files.receive(organizationId, createReadStream(path), {
    name,
    contentType: uploadedType('', name),
    ...uploadFacts(purpose, expires_after),
    maxBytes: config.limits.upload_size,
  })
}
