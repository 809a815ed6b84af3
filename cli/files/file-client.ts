import type { Readable } from 'node:stream'
import { z } from 'zod'
import type { Client } from '../client/client.ts'

const StoredFile = z.object({
  id: z.string(),
  bytes: z.number(),
  created_at: z.number(),
  expires_at: z.number().optional(),
  filename: z.string(),
  purpose: z.string(),
})
export type StoredFile = z.output<typeof StoredFile>
const Named = z.object({ id: z.string() })

/** A file to upload. */
export interface NewUpload {
  name: string
  purpose: string
  expiresMs?: number | undefined
}

const base = '/std/v1'
const pathOf = (id: string): string => `${base}/files/${encodeURIComponent(id)}`
const expiryOf = (expiresMs: number | undefined) =>
  expiresMs === undefined ? undefined : { anchor: 'created_at', seconds: Math.round(expiresMs / 1000) }

/** The files API of a server. */
export const openFileClient = (client: Client) => ({
  list: ({ purpose, limit }: { purpose?: string | undefined; limit: number }) =>
    client.ask({
      method: 'GET',
      path: `${base}/files?limit=${limit}${purpose === undefined ? '' : `&purpose=${encodeURIComponent(purpose)}`}`,
      answer: z.object({ data: z.array(StoredFile), has_more: z.boolean() }),
    }),
  find: (id: string) => client.ask({ method: 'GET', path: pathOf(id), answer: StoredFile }),
  remove: (id: string) => client.ask({ method: 'DELETE', path: pathOf(id), answer: Named }),
  content: (id: string, signal: AbortSignal) => client.content(`${pathOf(id)}/content`, signal),

  /** Uploads a file in one request. */
  upload(body: Readable, headers: Record<string, string>, signal: AbortSignal) {
    return client.post(`${base}/files`, body, headers, { answer: StoredFile, signal })
  },
  create: ({ name, purpose, expiresMs }: NewUpload, bytes: number) =>
    client.ask({
      method: 'POST',
      path: `${base}/uploads`,
      body: {
        bytes,
        filename: name,
        mime_type: 'application/octet-stream',
        purpose,
        expires_after: expiryOf(expiresMs),
      },
      answer: Named,
    }),
  part: (id: string, body: Readable, headers: Record<string, string>, signal: AbortSignal) =>
    client.post(`${base}/uploads/${id}/parts`, body, headers, { answer: Named, signal }),
  complete: async (id: string, part_ids: readonly string[]) =>
    (
      await client.ask({
        method: 'POST',
        path: `${base}/uploads/${id}/complete`,
        body: { part_ids },
        answer: z.object({ file: StoredFile }),
      })
    ).file,
  cancel: (id: string) => client.ask({ method: 'POST', path: `${base}/uploads/${id}/cancel`, answer: Named }),
})
export type FileClient = ReturnType<typeof openFileClient>
