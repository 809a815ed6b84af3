import { type Schema, send } from './client.ts'

/** Seconds for which inputs of requests are kept: thirty days. */
export const inputKeepSeconds = 2_592_000

interface UploadOptions {
  purpose: string
  /** Seconds after which the file is deleted; undefined: as its purpose says. */
  keepSeconds?: number | undefined
}

/** Stores a file of this computer on the server. Rejects with ApiFailure. */
export async function uploadFile(file: File, { purpose, keepSeconds }: UploadOptions): Promise<Schema<'File'>> {
  const body = new FormData()
  body.set('purpose', purpose)
  if (keepSeconds !== undefined) {
    body.set('expires_after[anchor]', 'created_at')
    body.set('expires_after[seconds]', String(keepSeconds))
  }
  // The server writes the file as it arrives, so what it must know before comes first.
  body.set('file', file)
  const answer = await send('/std/v1/files', { method: 'POST', body })
  return (await answer.json()) as Schema<'File'>
}
