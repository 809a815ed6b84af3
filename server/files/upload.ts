import type { IncomingMessage } from 'node:http'
import { z } from 'zod'
import { Failure } from '../../core/failure.ts'
import type { Call } from '../call.ts'

export const UploadedFile = z
  .object({ id: z.string(), name: z.string(), content_type: z.string(), bytes: z.int(), sha256: z.string() })
  .meta({ id: 'UploadedFile' })

/** What is read of a body that is refused, and for how long: most senders look for an answer only when they are done. */
const mostDiscarded = 64 << 20
const discardMs = 5_000

/** Resolves when the sender is done, or has had enough of a chance to be. */
function discard(req: IncomingMessage): Promise<void> {
  return new Promise(resolve => {
    if (req.complete || req.destroyed) return resolve()
    let left = mostDiscarded
    const timer = setTimeout(resolve, discardMs)
    const done = () => {
      clearTimeout(timer)
      resolve()
    }
    req.once('end', done).once('close', done).once('error', done)
    req.on('data', (chunk: Buffer) => {
      left -= chunk.length
      if (left < 0) done()
    })
  })
}

/** Takes the raw body of a PUT to a signed address and writes the answer. */
export async function receiveUpload(call: Call): Promise<void> {
  const { files, config } = call.owners
  const { req, params, query } = call
  const upload = files.verifyUpload(params.id ?? '', params.name ?? '', query)
  if (!upload)
    throw new Failure(
      'invalid_signature',
      'This address is not one that was given out here for an upload, or it has ended. Ask for a new one.',
    )
  const most = config.limits.upload_size
  const tooLarge = new Failure(
    'payload_too_large',
    `The file is larger than ${Math.floor(most / 1024)} KiB, the most that is taken here.`,
  )
  try {
    if (Number(req.headers['content-length'] ?? 0) > most) throw tooLarge
    const file = await files.receive(upload.organizationId, req.iterator({ destroyOnReturn: false }), {
      id: upload.id,
      name: upload.name,
      contentType: upload.contentType,
      purpose: 'upload',
      expiresAt: upload.keptMs === null ? null : Date.now() + upload.keptMs,
      maxBytes: most,
    })
    const { id, name, contentType, bytes, sha256 } = file
    call.send(
      200,
      JSON.stringify({ id, name, content_type: contentType, bytes, sha256 } satisfies z.input<typeof UploadedFile>),
    )
  } catch (thrown) {
    if (call.left) throw new Failure('cancelled', 'The client went away before the file was complete.')
    await discard(req)
    throw thrown
  }
}
