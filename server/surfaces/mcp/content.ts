import { Failure } from '../../../core/failure.ts'
import type { FileRecord, JobRecord } from '../../../core/store/store.ts'
import { filesOf } from '../../../core/tasks/registry.ts'
import type { ClientExchange } from '../../http/request/exchange.ts'
import { readResult } from '../../http/request/json-text.ts'
import type { Owners } from '../../http/request/owners.ts'
import { resultText } from '../../views/job-record.ts'
import { RpcError, rpcCodes } from './message.ts'

const pageSize = 100
const scheme = 'infer://files/'

export const resourceTemplates = [
  {
    uriTemplate: `${scheme}{id}`,
    name: 'file',
    title: 'File',
    description: 'A file of the organization by its id.',
  },
]

const shown = ({ id, name, contentType, bytes, createdAt }: FileRecord) => ({
  uri: scheme + id,
  name,
  mimeType: contentType,
  size: bytes,
  annotations: { lastModified: new Date(createdAt).toISOString() },
})

/** Returns a page of the files of the organization, newest first. Thumbnails are parts of other files. */
export async function listResources(exchange: ClientExchange, after: string | undefined, { files }: Owners<'files'>) {
  const { organizationId } = exchange.caller
  const page = await files.list(organizationId, { limit: pageSize, ...(after ? { after } : {}) })
  return {
    resources: page.filter(({ purpose }) => purpose !== 'thumbnail').map(shown),
    ...(page.length < pageSize ? {} : { nextCursor: page.at(-1)!.id }),
  }
}

/** Returns a file of the organization: as text, or as base64. A foreign file is like one that does not exist. */
export async function readResource(exchange: ClientExchange, uri: string, owners: Owners<'files'>) {
  const id = uri.startsWith(scheme) ? uri.slice(scheme.length) : ''
  const file = id === '' ? undefined : await owners.files.find(exchange.caller.organizationId, id)
  if (!file) throw new RpcError(rpcCodes.resourceNotFound, `There is no resource '${uri.slice(0, 200)}'.`)
  if (file.bytes > maxAnswerBytes)
    throw new Failure(
      'payload_too_large',
      `The file ${file.id} has ${file.bytes} bytes, and a resource has at most ${maxAnswerBytes}. Read it at ${owners.files.link(file, exchange.origin)}`,
    )
  const bytes = await bytesOf(file, owners)
  const isText = /^text\/|[/+](json|xml|yaml)$/.test(file.contentType)
  const body = isText ? { text: bytes.toString('utf8') } : { blob: bytes.toString('base64') }
  return { contents: [{ uri, mimeType: file.contentType, ...body }] }
}

/** A part of a tool's result. */
type Content = Record<string, unknown> & { type: 'text' | 'image' | 'audio' | 'resource_link' }

export interface ToolResult {
  content: Content[]
  structuredContent?: object
  isError?: true
}

/**
 * Bytes of files and of JSON that are sent in an answer, so that writing it never blocks the event loop for long. More
 * files are sent as links only.
 */
export const maxAnswerBytes = 1 << 20

/** Returns the text of an answer, so that a model need not read JSON: of a chat or a transcription; else the JSON. */
function textOf(value: object) {
  const { choices, text } = value as { choices?: { message?: { content?: unknown } }[]; text?: unknown }
  const said = choices?.length === 1 ? choices[0]?.message?.content : text
  return typeof said === 'string' && said !== '' ? said : JSON.stringify(value)
}

/** Pure: returns the result of a tool whose answer is this value. */
export const valueResult = (value: object): ToolResult => ({
  content: [{ type: 'text', text: textOf(value) }],
  structuredContent: value,
})

/** Pure: returns the result of a tool that failed, for the model of the client to read. */
export const failedResult = ({ code, message, param }: Failure): ToolResult => ({
  content: [{ type: 'text', text: `${message}${param === undefined ? '' : ` (${param})`} [${code}]` }],
  isError: true,
})

function fileContent(file: FileRecord, exchange: ClientExchange, { files }: Owners<'files'>): Content {
  const { name, contentType: mimeType, bytes: size } = file
  return { type: 'resource_link', uri: files.link(file, exchange.origin), name, mimeType, size }
}

/** Resolves with the bytes of a file. Throws Failure `not_found` if they are missing. */
async function bytesOf(file: FileRecord, { files }: Owners<'files'>): Promise<Buffer> {
  const handle = await files.open(file)
  if (!handle) throw new Failure('not_found', `The file ${file.id} was not found.`)
  await using _ = handle
  return handle.readFile()
}

/** Resolves with the result of a tool that ran as a job, with the files that it created. */
export async function jobResult(
  exchange: ClientExchange,
  job: JobRecord,
  owners: Owners<'files'>,
): Promise<ToolResult> {
  if (job.status !== 'completed' || job.result === null)
    return failedResult(
      job.error
        ? new Failure(job.error.code, job.error.message)
        : new Failure('cancelled', `The job ${job.id} was cancelled.`),
    )
  const stored = await readResult(job.result)
  if (stored.length > maxAnswerBytes / 2)
    return { content: [{ type: 'text', text: `The result is large. Read it with GET /api/jobs/${job.id}.` }] }
  const result = valueResult(JSON.parse(resultText(job.task, stored, exchange, owners)) as object)
  let left = maxAnswerBytes
  for (const id of filesOf(job.task, JSON.parse(stored))) {
    const file = await owners.files.find(job.organizationId, id)
    if (!file) continue
    const kind = /^(image|audio)\//.exec(file.contentType)?.[1] as 'image' | 'audio' | undefined
    if (kind && file.bytes <= left) {
      left -= file.bytes
      const data = (await bytesOf(file, owners)).toString('base64')
      result.content.push({ type: kind, data, mimeType: file.contentType })
    }
    result.content.push(fileContent(file, exchange, owners))
  }
  return result
}
