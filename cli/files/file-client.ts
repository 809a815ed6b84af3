import type { ApiPurpose } from '../../core/store/file-records.ts'
import { type Api, type Client, dataOf } from '../client/client.ts'
import type { Form } from '../client/form.ts'

export type StoredFile = Api['File']

/** A file to upload. */
export interface NewUpload {
  name: string
  purpose: Api['UploadCreate']['purpose']
  expiresMs?: number | undefined
}

const of = (id: string) => ({ params: { path: { id } } })

/** The files API of a server. */
export const openFileClient = (client: Client) => {
  const { api } = client
  return {
    list: (query: { purpose?: ApiPurpose; limit: number }) => dataOf(api.GET('/std/v1/files', { params: { query } })),
    find: (id: string) => dataOf(api.GET('/std/v1/files/{id}', of(id))),
    remove: (id: string) => dataOf(api.DELETE('/std/v1/files/{id}', of(id))),
    content: (id: string, signal: AbortSignal) =>
      client.content(`/std/v1/files/${encodeURIComponent(id)}/content`, signal),

    /** Uploads a file in one request. */
    upload: (form: Form, signal: AbortSignal) => client.postForm('/std/v1/files', form, signal) as Promise<StoredFile>,
    create: ({ name, purpose, expiresMs }: NewUpload, bytes: number) => {
      const expires_after = { anchor: 'created_at', seconds: Math.round((expiresMs ?? 0) / 1000) } as const
      const body = { bytes, filename: name, mime_type: 'application/octet-stream', purpose }
      return dataOf(api.POST('/std/v1/uploads', { body: expiresMs === undefined ? body : { ...body, expires_after } }))
    },
    part: (id: string, form: Form, signal: AbortSignal) =>
      client.postForm(`/std/v1/uploads/${id}/parts`, form, signal) as Promise<Api['UploadPart']>,
    async complete(id: string, part_ids: string[]): Promise<StoredFile> {
      const { file } = await dataOf(api.POST('/std/v1/uploads/{id}/complete', { ...of(id), body: { part_ids } }))
      return file!
    },
    cancel: (id: string) => dataOf(api.POST('/std/v1/uploads/{id}/cancel', of(id))),
  }
}
export type FileClient = ReturnType<typeof openFileClient>
