import type { FileHandle } from 'node:fs/promises'
import { Failure } from '../../core/failure.ts'
import { queueIdOf } from '../../core/ids.ts'
import type { ImageTask } from '../../core/schemas/task.ts'
import type { FileRecord, JobRecord } from '../../core/store/store.ts'
import type { ImageRequest } from '../../core/tasks/image/image-request.ts'
import { type ImageResult, imageUsage, linkedImages } from '../../core/tasks/image/image-result.ts'
import type { Call } from '../call.ts'
import { sendJson } from '../dispatch.ts'
import { Embedded, readResult, sendEmbedded } from '../embedded.ts'
import { base64PiecesOf } from '../files/send-pieces.ts'
import type { Owners } from '../owners.ts'
import { JsonText } from '../route.ts'
import { eventsHead, sseText } from '../sse.ts'

const quote = Buffer.from('"')

const expired = ({ id }: JobRecord) =>
  new Failure('output_expired', `The images of job ${id} are no longer kept. Send the request again.`)

/** Sends the images of a job in the requested format. Throws Failure `output_expired`. */
export async function sendImages(
  call: Call,
  task: ImageTask,
  job: JobRecord,
  request: ImageRequest,
  { files }: Pick<Owners, 'files'>,
): Promise<void> {
  if (job.result === null) throw expired(job)
  const result = JSON.parse(await readResult(job.result)) as ImageResult
  const records = await Promise.all(result.images.map(({ file_id }) => files.find(job.organizationId, file_id)))
  const images = records.filter(record => record !== undefined)
  if (images.length < records.length) throw expired(job)
  const origin = call.origin
  const linked = linkedImages(result, file => files.link(file, origin))
  const inBase64 = request.response_format === 'b64_json' || request.response_format === 'base64'
  if (!request.stream && !inBase64) return sendJson(call, new JsonText(JSON.stringify(linked)))

  async function opened(image: FileRecord): Promise<FileHandle> {
    const file = await files.open(image)
    if (!file) throw expired(job)
    return file
  }
  async function* base64(image: FileRecord): AsyncGenerator<Uint8Array> {
    await using file = await opened(image)
    yield quote
    yield* base64PiecesOf(call, file, image.bytes)
    yield quote
  }
  // Checked before the head is sent, after which a missing file could only cut the response.
  for (const image of images) await (await opened(image)).close()
  // Each file is read while it is sent, so that only a few pieces are in memory at a time.
  const embedded = images.map(image => new Embedded(() => base64(image)))
  if (request.stream) return sendEmbedded(call, 200, eventsText(task, result, request, embedded), embedded, eventsHead)
  const data = linked.data.map(({ url: _address, ...facts }, at) => ({ b64_json: embedded[at], ...facts }))
  await sendJson(call, new JsonText(JSON.stringify({ ...linked, data }), 200, embedded))
}

const events: Record<ImageTask, string> = {
  'std/image-generation': 'image_generation.completed',
  'std/image-edit': 'image_edit.completed',
}

/** The quality in events, which do not use the older names. */
const eventQuality = {
  auto: 'auto',
  low: 'low',
  medium: 'medium',
  high: 'high',
  standard: 'medium',
  hd: 'high',
} as const

/** Returns one event for each image. There are no events of partial images, because no engine creates those. */
function eventsText(
  task: ImageTask,
  { created, size, output_format }: ImageResult,
  { quality, background }: ImageRequest,
  embedded: readonly Embedded[],
): string {
  const event = (b64_json: Embedded) => ({
    type: events[task],
    b64_json,
    created_at: created,
    size,
    quality: eventQuality[quality ?? 'auto'],
    background: background ?? 'auto',
    output_format,
    usage: imageUsage(1),
  })
  return embedded.map(one => sseText({ event: events[task], data: JSON.stringify(event(one)) })).join('')
}

/** Returns the failure for a caller whose wait for the images is over. */
export const unfinished = (call: Call, { id }: JobRecord): Failure =>
  new Failure(
    'timeout',
    `The images are not ready yet. Job ${id} continues: read it at its status_url. To get a job at once, send the header 'Prefer: respond-async'.`,
    {
      retryAfterMs: 2_000,
      facts: { job_id: id, request_id: queueIdOf(id), status_url: `${call.origin}/api/jobs/${id}` },
    },
  )
