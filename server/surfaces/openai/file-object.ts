import { z } from 'zod'
import { Failure } from '../../../core/failure.ts'
import { safeContentType } from '../../../core/files/file-path.ts'
import { array, boolean, integer, namedObject, nullableString, string } from '../../../core/schemas/fields.ts'
import { type ApiPurpose, type FileRecord, uploadPurposes } from '../../../core/store/store.ts'
import { deletedObject } from '../../http/answer/page.ts'
import { seconds } from '../../views/job-record.ts'

const unix = (what: string) => integer(`When ${what}, Unix seconds.`)

/** How long a file is kept, as OpenAI's API takes it. */
const ExpiresAfter = namedObject('ExpiresAfter', 'When a file expires. Its bytes are deleted then.', {
  anchor: z.literal('created_at').describe('The time from which the seconds count: always `created_at`.'),
  seconds: z.int().min(3600).max(2_592_000).describe('Seconds until the file expires, 3600 to 2592000 (30 days).'),
})

export const purposeField = z
  .enum(uploadPurposes)
  .describe('What the file is for. `batch` for the requests of a batch, `user_data` for anything else.')
export const expiresAfterField = ExpiresAfter.nullish().describe(
  'When the file expires. Default: 30 days for the purpose `batch`; other files are kept until they are deleted.',
)

export const FileObject = namedObject('File', 'A file of the organization.', {
  id: string('Id of the file: `file-…`. Requests with media take it as `file_id`.'),
  object: z.literal('file').describe('Always `file`.'),
  bytes: integer('Size in bytes.'),
  created_at: unix('the file was created'),
  expires_at: unix('the file expires').optional().describe('When the file expires, Unix seconds. Absent: never.'),
  filename: string('Name of the file.'),
  purpose: string('What the file is for; `batch_output` for results of a batch.'),
  status: z.literal('processed').describe('Always `processed`: a file can be used at once.'),
})

export const FileList = namedObject('FileList', 'A page of files.', {
  object: z.literal('list').describe('Always `list`.'),
  data: array('The files of this page.', FileObject),
  first_id: nullableString('Id of the first file; null without any.'),
  last_id: nullableString('Id of the last file; null without any. Send it as `after`.'),
  has_more: boolean('Whether there are more files.'),
})

export const FileDeleted = deletedObject('file', 'file', z.literal(true).describe('Always true.')).meta({
  id: 'FileDeleted',
  description: 'Confirms that a file was deleted.',
})

/** Returns a file in the form of OpenAI's API. Members without a value are absent, as its description requires. */
export const fileObject = (file: FileRecord): z.input<typeof FileObject> => ({
  id: file.id,
  object: 'file',
  bytes: file.bytes,
  created_at: seconds(file.createdAt),
  ...(file.expiresAt === null ? {} : { expires_at: seconds(file.expiresAt) }),
  filename: file.name,
  purpose: file.apiPurpose ?? 'user_data',
  status: 'processed',
})

/** The same for an absent file and for one of another organization, with the message of OpenAI's API. */
export const noSuchFile = (id: string): Failure =>
  new Failure('not_found', `No such File object: ${id.slice(0, 64)}`, { param: 'id' })

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
