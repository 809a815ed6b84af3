import { Failure } from '../../../core/failure.ts'
import type { FileRecord } from '../../../core/store/store.ts'
import type { Call } from '../../http/request/call.ts'
import type { Owners } from '../../http/request/owners.ts'
import { bytesOf, maxAnswerBytes } from './content.ts'
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
export async function listResources(call: Call, after: string | undefined, { files }: Pick<Owners, 'files'>) {
  const { organizationId } = call.caller
  const page = await files.list(organizationId, { limit: pageSize, ...(after ? { after } : {}) })
  return {
    resources: page.filter(({ purpose }) => purpose !== 'thumbnail').map(shown),
    ...(page.length < pageSize ? {} : { nextCursor: page.at(-1)!.id }),
  }
}

/** Returns a file of the organization: as text, or as base64. A foreign file is like one that does not exist. */
export async function readResource(call: Call, uri: string, owners: Pick<Owners, 'files'>) {
  const id = uri.startsWith(scheme) ? uri.slice(scheme.length) : ''
  const file = id === '' ? undefined : await owners.files.find(call.caller.organizationId, id)
  if (!file) throw new RpcError(rpcCodes.resourceNotFound, `There is no resource '${uri.slice(0, 200)}'.`)
  if (file.bytes > maxAnswerBytes)
    throw new Failure(
      'payload_too_large',
      `The file ${file.id} has ${file.bytes} bytes, and a resource has at most ${maxAnswerBytes}. Read it at ${owners.files.link(file, call.origin)}`,
    )
  const bytes = await bytesOf(file, owners)
  const isText = /^text\/|[/+](json|xml|yaml)$/.test(file.contentType)
  const body = isText ? { text: bytes.toString('utf8') } : { blob: bytes.toString('base64') }
  return { contents: [{ uri, mimeType: file.contentType, ...body }] }
}
