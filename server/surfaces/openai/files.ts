import { createReadStream } from 'node:fs'
import { setImmediate } from 'node:timers/promises'
import { z } from 'zod'
import { isDataUrl } from '../../../core/data-url.ts'
import { invalid } from '../../../core/failure.ts'
import { safeContentType } from '../../../core/files/file-path.ts'
import { isId } from '../../../core/ids.ts'
import {
  array,
  boolean,
  integer,
  namedObject,
  nullableString,
  nullish,
  oneOf,
  optional,
  optionalOneOf,
  optionalString,
  string,
} from '../../../core/schemas/fields.ts'
import { parsed } from '../../../core/schemas/issues.ts'
import { type ApiPurpose, apiPurposes, type FileRecord, uploadPurposes } from '../../../core/store/store.ts'
import { deletedAnswer, deletedObject } from '../../http/answer/page.ts'
import { fileAnswers, sendFile } from '../../http/answer/send-file.ts'
import { readJson } from '../../http/body/body.ts'
import { formValues, isForm, readForm } from '../../http/body/multipart.ts'
import type { ClientExchange } from '../../http/request/exchange.ts'
import { JsonText } from '../../http/request/json-text.ts'
import type { Owners } from '../../http/request/owners.ts'
import { routeOf } from '../../http/request/route.ts'
import { seconds, viewOf } from '../../views/view-of.ts'

const unix = (what: string) => integer(`When ${what}, Unix seconds.`)

/** How long a file is kept, as OpenAI's API takes it. */
const ExpiresAfter = namedObject('ExpiresAfter', 'When a file expires. Its bytes are deleted then.', {
  anchor: z.literal('created_at').describe('The time from which the seconds count: always `created_at`.'),
  seconds: z.int().min(3600).max(2_592_000).describe('Seconds until the file expires, 3600 to 2592000 (30 days).'),
})

export const purposeField = oneOf(
  'What the file is for. `batch` for the requests of a batch, `user_data` for anything else.',
  uploadPurposes,
)
export const expiresAfterField = nullish(
  ExpiresAfter,
  'When the file expires. Default: 30 days for the purpose `batch`; other files are kept until they are deleted.',
)

export const FileObject = namedObject('File', 'A file of the organization.', {
  id: string('Id of the file: `file-…`. Requests with media take it as `file_id`.'),
  object: z.literal('file').describe('Always `file`.'),
  bytes: integer('Size in bytes.'),
  created_at: unix('the file was created'),
  expires_at: optional(unix('the file expires'), 'When the file expires, Unix seconds. Absent: never.'),
  filename: string('Name of the file.'),
  purpose: string('What the file is for; `batch_output` for results of a batch.'),
  status: z.literal('processed').describe('Always `processed`: a file can be used at once.'),
})

const FileList = namedObject('FileList', 'A page of files.', {
  object: z.literal('list').describe('Always `list`.'),
  data: array('The files of this page.', FileObject),
  first_id: nullableString('Id of the first file; null without any.'),
  last_id: nullableString('Id of the last file; null without any. Send it as `after`.'),
  has_more: boolean('Whether there are more files.'),
})

const FileDeleted = deletedObject('FileDeleted', 'Confirms that a file was deleted.', ['file', 'file'], {
  deleted: z.literal(true).describe('Always true.'),
})

/** Returns a file in the form of OpenAI's API. Members without a value are absent, as its description requires. */
export const fileObject = (file: FileRecord): z.input<typeof FileObject> =>
  viewOf(FileObject, file, {
    expires_at: seconds(file.expiresAt) ?? undefined,
    filename: file.name,
    purpose: file.apiPurpose ?? 'user_data',
  })

/** The same for an absent file and for one of another organization, with the message of OpenAI's API. */
const noSuchFile = (id: string) => invalid('id', `No such File object: ${id.slice(0, 64)}`, 'not_found')

const batchMs = 30 * 86_400_000

/** Returns the milliseconds until a new file expires; null: it is kept until it is deleted. */
export function keptMsOf(purpose: ApiPurpose, expiresAfter: z.output<typeof ExpiresAfter> | null | undefined) {
  if (expiresAfter) return expiresAfter.seconds * 1000
  return purpose === 'batch' ? batchMs : null
}

/** Content types by the ending of the name, for clients that do not know the type of what they send. */
const typesByEnding: Readonly<Record<string, string>> = {
  jsonl: 'application/jsonl',
  ndjson: 'application/jsonl',
  json: 'application/json',
  txt: 'text/plain',
  md: 'text/markdown',
  csv: 'text/csv',
  pdf: 'application/pdf',
  png: 'image/png',
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  webp: 'image/webp',
  gif: 'image/gif',
  mp4: 'video/mp4',
  webm: 'video/webm',
  mov: 'video/quicktime',
  wav: 'audio/wav',
  mp3: 'audio/mpeg',
  flac: 'audio/flac',
  ogg: 'audio/ogg',
  m4a: 'audio/mp4',
}

/** Returns the content type of an upload: the sent one if it is a known one, else that of the ending of the name. */
export function uploadedType(sent: string, name: string): string {
  const type = safeContentType(sent)
  if (type !== 'application/octet-stream') return type
  const ending = name.slice(name.lastIndexOf('.') + 1).toLowerCase()
  return Object.hasOwn(typesByEnding, ending) ? typesByEnding[ending]! : type
}

const fields = { purpose: purposeField, expires_after: expiresAfterField }

/** A file to upload, as a form. Instead of `file` it may have a `url`. */
const FileForm = namedObject('FileForm', 'A file to upload.', {
  ...fields,
  file: z.file().meta({ description: 'The file. Its name becomes the name of the file.' }),
})

/** A file that infer fetches. */
const FileFromUrl = namedObject('FileFromUrl', 'A file to fetch from a URL.', {
  ...fields,
  url: z.string().min(1).describe('Where to fetch the file: a public http(s) URL, or a `data:` URL with base64.'),
  filename: nullish(z.string().min(1).max(256), 'Name of the file. Default: the last part of the URL.'),
})

const Fields = z.object(fields)

type CreateOwners = Owners<'admission' | 'config' | 'cpu' | 'files' | 'media'>

/** Bytes of a form that are not of the file; roughly, for the check before the file arrives. */
const formOverhead = 8192

/** Stores the file of a form, or the one at a URL. Throws the failures of reading and storing it. */
async function createFile(exchange: ClientExchange, owners: CreateOwners) {
  if (!isForm(exchange.req)) return fetchFile(exchange, parsed(FileFromUrl, await readJson(exchange, owners)), owners)
  const { files, config } = owners
  const { organizationId } = exchange.caller
  await files.requireRoom(
    organizationId,
    Math.max(1, Number(exchange.req.headers['content-length'] ?? 1) - formOverhead),
  )
  await using form = await readForm(exchange, { files: { file: 1 }, maxBytes: config.limits.upload_size }, owners)
  const body = formValues(form.fields, { ...FileFromUrl.shape })
  const [file] = form.files.get('file') ?? []
  if (!file) {
    if (body.url !== undefined) return await fetchFile(exchange, parsed(FileFromUrl, body), owners)
    throw invalid('file', "Send the file in the field 'file', or its URL in 'url'.", 'missing_required_parameter')
  }
  const { purpose, expires_after } = parsed(Fields, body)
  if (file.bytes === 0) throw invalid('file', 'The file is empty. Send one with content.')
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
    expiresAt: { keptMs },
  }
}

/** The last part of the path of a URL; empty if it has none. */
function nameOfUrl(url: string) {
  if (isDataUrl(url)) return ''
  const last = URL.parse(url)?.pathname.split('/').at(-1) ?? ''
  try {
    return decodeURIComponent(last)
  } catch {
    return last
  }
}

async function fetchFile(
  exchange: ClientExchange,
  { url, filename, purpose, expires_after }: z.output<typeof FileFromUrl>,
  { files, media, config }: CreateOwners,
): Promise<FileRecord> {
  const { organizationId } = exchange.caller
  await files.requireRoom(organizationId, 1)
  await using workspace = await files.workspace(exchange.id)
  const sender = { organizationId, origin: exchange.origin, signal: exchange.signal }
  const path = await media.download(sender, 'url', url, workspace.folder)
  const name = filename ?? (nameOfUrl(url) || 'file')
  return await files.receive(organizationId, createReadStream(path), {
    name,
    contentType: uploadedType('', name),
    ...uploadFacts(purpose, expires_after),
    maxBytes: config.limits.upload_size,
  })
}

const route = routeOf({ tag: 'Stored files' })
const base = '/std/v1/files'
const params = z.object({ id: string('Id of the file: `file-…`.') })
const Query = z.object({
  purpose: optionalOneOf('Only files with this purpose. Default: all.', apiPurposes),
  limit: z.coerce.number().int().min(1).max(10_000).default(10_000).describe('Most files of the page, 1 to 10000.'),
  order: z.enum(['asc', 'desc']).default('desc').describe('`desc`: newest first. `asc`: oldest first.'),
  after: optionalString('Id of the last file of the page before. Default: the first page.'),
})

/** Rows that are read and serialized at once: fewer than two milliseconds of work. */
const sliceRows = 100

/**
 * Returns a page as JSON text. A page may have ten thousand files, so it is made in slices, between which other requests
 * are answered.
 */
async function listFiles(
  exchange: ClientExchange,
  { purpose, limit, order, after }: z.output<typeof Query>,
  { files }: Owners<'files'>,
): Promise<JsonText> {
  if (after !== undefined && !(isId(after) && after.startsWith('file-')))
    throw invalid('after', "'after' must be the id of a file: file-….")
  const texts: string[] = []
  let first: string | null = null
  let last: string | undefined
  let more = true
  for (let left = limit; left > 0 && more; ) {
    const page = { order, purpose, after: last ?? after, limit: Math.min(left, sliceRows) + 1 }
    const rows = await files.api.list(exchange.caller.organizationId, page)
    more = rows.length === page.limit
    const taken = rows.slice(0, page.limit - 1)
    for (const row of taken) texts.push(JSON.stringify(fileObject(row)))
    first ??= taken[0]?.id ?? null
    last = taken.at(-1)?.id ?? last
    left -= taken.length
    if (more && left > 0) await setImmediate()
    exchange.abortSource.throwIfAborted()
  }
  const ends = { first_id: first, last_id: last ?? null, has_more: more }
  return new JsonText(`{"object":"list","data":[${texts.join(',')}],${JSON.stringify(ends).slice(1)}`)
}

export function stdFileRoutes(owners: Owners<'admission' | 'config' | 'cpu' | 'files' | 'log' | 'media'>) {
  const { files } = owners
  async function required(exchange: ClientExchange) {
    const id = exchange.params.id ?? ''
    const file = await files.api.find(exchange.caller.organizationId, id)
    if (file) return file
    throw noSuchFile(id)
  }
  return [
    route(`POST ${base}`, 'user:write', {
      bucket: 'api',
      summary: 'Upload file',
      description:
        'Stores a file of the organization, which is written to the disk as it arrives. Send it as the field `file` of a form, or name a `url` from which infer fetches it. Send files that are larger than the limit of one request in parts: `POST /std/v1/uploads`.',
      body: FileFromUrl,
      form: FileForm,
      example: { url: 'data:text/plain;base64,SGVsbG8hCg==', filename: 'hello.txt', purpose: 'user_data' },
      response: FileObject,
      errorCodes: ['url_fetch_failed', 'not_found', 'storage_full', 'disk_full', 'cancelled'],
      async answer(exchange) {
        exchange.send(200, JSON.stringify(fileObject(await createFile(exchange, owners))))
      },
    }),
    route(`GET ${base}`, 'user:read', {
      summary: 'List files',
      description:
        'Returns files that were uploaded and results of batches. Inputs and results of other requests are not listed: their URLs are in the job.',
      query: Query,
      response: FileList,
      handle: ({ query }, exchange) => listFiles(exchange, query, owners),
    }),
    route(`GET ${base}/:id`, 'user:read', {
      summary: 'Get file',
      description: 'Returns name, size, purpose and expiry of a file.',
      params,
      response: FileObject,
      errorCodes: ['not_found'],
      handle: async (_, exchange) => fileObject(await required(exchange)),
    }),
    route(`GET ${base}/:id/content`, 'user:read', {
      summary: 'Download file content',
      description:
        'Returns the bytes of a file. One `Range` is answered with 206, or with 416 if it begins after the end; `If-None-Match` with 304. Types that a browser would run are sent as `application/octet-stream`.',
      params,
      media: ['*/*'],
      otherAnswers: fileAnswers,
      errorCodes: ['not_found'],
      async answer(exchange) {
        await sendFile(exchange, await required(exchange), { kind: 'attachment', maxAge: 0 }, owners)
      },
    }),
    route(`DELETE ${base}/:id`, 'user:write', {
      summary: 'Delete file',
      description: 'Deletes a file and its bytes. A file that unfinished work needs is refused with `conflict`.',
      params,
      response: FileDeleted,
      errorCodes: ['not_found', 'conflict'],
      async handle({ params: { id } }, exchange) {
        if (!(await files.api.remove(exchange.caller.organizationId, id))) throw noSuchFile(id)
        return deletedAnswer('file', id)
      },
    }),
  ]
}
