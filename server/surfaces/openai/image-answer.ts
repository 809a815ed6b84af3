import { Failure } from '../../../core/failure.ts'
import { queueIdOf } from '../../../core/ids.ts'
import type { ImageTask } from '../../../core/schemas/task.ts'
import type { FileRecord, JobRecord } from '../../../core/store/store.ts'
import { type ImageRequest, isInBase64 } from '../../../core/tasks/image/image-request.ts'
import { type ImageResult, imageUsage, linkedImages } from '../../../core/tasks/image/image-result.ts'
import type { Preview } from '../../../core/tasks/run-job.ts'
import { openChangeFlag } from '../../http/answer/follow.ts'
import { base64PiecesOf, sendPieces, withFirstPiece } from '../../http/answer/send-pieces.ts'
import { eventsHead, pingComment, sseText } from '../../http/answer/sse.ts'
import { errorFrame } from '../../http/request/errors.ts'
import type { ClientExchange } from '../../http/request/exchange.ts'
import { Embedded, JsonText, readResult } from '../../http/request/json-text.ts'
import type { Owners } from '../../http/request/owners.ts'
import { sendJson } from '../../http/run-route.ts'
import { seconds } from '../../views/view-of.ts'
import { unfinishedImage } from '../../work/unfinished-image.ts'

interface EventOptions {
  task: ImageTask
  job: JobRecord
  request: ImageRequest
  /** Resolves with the job when it is completed. Rejects with Failure. */
  completed: Promise<JobRecord>
}

type EventOwners = Owners<'cpu' | 'files' | 'jobs' | 'log'>

/** Milliseconds of silence before a ping, below the time after which proxies close a silent connection. */
const pingMs = 15_000

const prefixes: Record<ImageTask, string> = {
  'std/image-generation': 'image_generation',
  'std/image-edit': 'image_edit',
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

/**
 * Sends the images as server-sent events: the unfinished ones while the engine reports them, then the finished ones.
 * Rejects with Failure for what fails before the first event; a later failure is the last event.
 */
export async function sendImageEvents(exchange: ClientExchange, options: EventOptions, owners: EventOwners) {
  // Rejected while a preview is encoded: it is awaited later.
  options.completed.catch(() => {})
  const pieces = await withFirstPiece(eventsOf(exchange, options, owners))
  exchange.head(200, ...eventsHead)
  await sendPieces(exchange, pieces)
}

async function* eventsOf(exchange: ClientExchange, options: EventOptions, owners: EventOwners) {
  const { completed, request } = options
  let begun = false
  try {
    if (request.partial_images)
      for await (const piece of partialEvents(options, owners)) {
        // The answer begins with an event, because until then a failure has a status of its own.
        if (!begun && piece === ping) continue
        begun = true
        yield piece
      }
    const job = await completed
    for await (const piece of completedEvents(exchange, job, options, owners)) {
      begun = true
      yield piece
    }
  } catch (thrown) {
    const failure = Failure.from(thrown)
    if (!begun || failure.code === 'cancelled') throw failure
    yield Buffer.from(errorFrame(failure, exchange.id))
  }
}

const ping = Buffer.from(pingComment)

/** Yields an event for each unfinished image, until the job has ended. */
async function* partialEvents({ task, job, request, completed }: EventOptions, owners: EventOwners) {
  const { jobs } = owners
  const waiting: Preview[] = []
  let seen = 0
  let over = false
  const ended = completed.then(
    () => (over = true),
    () => (over = true),
  )
  const changes = openChangeFlag({ over: ended })
  const read = () => {
    const all = jobs.previewsOf(job.id)
    // A new attempt reports from the beginning.
    if (all.length < seen) seen = 0
    waiting.push(...all.slice(seen))
    seen = all.length
    changes.set()
  }
  const unfollow = jobs.follow(job.id, read)
  const counts = new Map<number, number>()
  try {
    read()
    for (;;) {
      const preview = waiting.shift()
      if (preview) {
        const index = counts.get(preview.image) ?? 0
        if (index >= (request.partial_images ?? 0)) continue
        const { output_format, output_compression } = request
        const encoding = { format: output_format ?? 'png', quality: output_compression ?? 100 }
        const bytes = await unfinishedImage(job, preview, encoding, owners)
        if (!bytes) continue
        counts.set(preview.image, index + 1)
        yield partialEvent(task, job, request, { b64_json: bytes.toString('base64'), image: preview.image, index })
      } else if (over) return
      else if (!(await changes.wait(pingMs))) yield ping
    }
  } finally {
    unfollow()
  }
}

/** The fields that all events share. */
const shared = (
  { quality, background, output_format }: ImageRequest,
  { created, size }: { created: number; size: string },
) => ({
  created_at: created,
  size,
  quality: eventQuality[quality ?? 'auto'],
  background: background ?? 'auto',
  output_format: output_format ?? 'png',
})

function partialEvent(
  task: ImageTask,
  job: JobRecord,
  request: ImageRequest,
  { b64_json, image, index }: { b64_json: string; image: number; index: number },
): Uint8Array {
  const type = `${prefixes[task]}.partial_image`
  const { width, height } = JSON.parse(job.inputs) as { width: number; height: number }
  const facts = shared(request, { created: seconds(job.createdAt), size: `${width}x${height}` })
  const data = { type, b64_json, ...facts, partial_image_index: index, image_index: image }
  return Buffer.from(sseText({ event: type, data: JSON.stringify(data) }))
}

/** Yields one event for each finished image, in pieces. */
async function* completedEvents(
  exchange: ClientExchange,
  job: JobRecord,
  { task, request }: EventOptions,
  owners: EventOwners,
): AsyncGenerator<Uint8Array> {
  const { result, base64 } = await imagesOf(exchange, job, owners)
  const type = `${prefixes[task]}.completed`
  const facts = JSON.stringify({ ...shared(request, result), usage: imageUsage(1) }).slice(1)
  for (const read of base64) {
    yield Buffer.from(`event: ${type}\ndata: {"type":"${type}","b64_json":`)
    yield* read()
    yield Buffer.from(`,${facts}\n\n`)
  }
}

const quote = Buffer.from('"')

const expired = ({ id }: JobRecord) =>
  new Failure('output_expired', `The images of job ${id} are no longer kept. Send the request again.`)

/** The images of a completed job. */
interface JobImages {
  result: ImageResult
  /** Returns each image as a JSON string in base64. Its file is read while it is sent, in a few pieces at a time. */
  base64: (() => AsyncGenerator<Uint8Array>)[]
}

/** Reads the result of a job and checks that its images still exist. Throws Failure `output_expired`. */
async function imagesOf(exchange: ClientExchange, job: JobRecord, { files }: Owners<'files'>): Promise<JobImages> {
  if (job.result === null) throw expired(job)
  const result = JSON.parse(await readResult(job.result)) as ImageResult
  const records = await Promise.all(result.images.map(({ file_id }) => files.find(job.organizationId, file_id)))
  const images = records.filter(record => record !== undefined)
  if (images.length < records.length) throw expired(job)

  async function opened(image: FileRecord) {
    const file = await files.open(image)
    if (!file) throw expired(job)
    return file
  }
  async function* base64(image: FileRecord): AsyncGenerator<Uint8Array> {
    await using file = await opened(image)
    yield quote
    yield* base64PiecesOf(exchange, file, image.bytes)
    yield quote
  }
  // Checked before the head is sent, after which a missing file could only cut the response.
  for (const image of images) await (await opened(image)).close()
  return { result, base64: images.map(image => () => base64(image)) }
}

/** Sends the images of a job as JSON in the requested format. Throws Failure `output_expired`. */
export async function sendImages(
  exchange: ClientExchange,
  job: JobRecord,
  request: ImageRequest,
  owners: Owners<'files'>,
): Promise<void> {
  const { result, base64 } = await imagesOf(exchange, job, owners)
  const origin = exchange.origin
  const linked = linkedImages(result, file => owners.files.link(file, origin))
  if (!isInBase64(request)) return sendJson(exchange, new JsonText(JSON.stringify(linked)))
  const embedded = base64.map(read => new Embedded(read))
  const data = linked.data.map(({ url: _address, ...facts }, at) => ({ b64_json: embedded[at], ...facts }))
  await sendJson(exchange, new JsonText(JSON.stringify({ ...linked, data }), 200, embedded))
}

/** Returns the failure for a caller whose wait for the images is over. */
export const unfinished = (exchange: ClientExchange, { id }: JobRecord): Failure =>
  new Failure(
    'timeout',
    `The images are not ready yet. Job ${id} continues: read it at its status_url. To get a job at once, send the header 'Prefer: respond-async'.`,
    {
      retryAfterMs: 2_000,
      facts: { job_id: id, request_id: queueIdOf(id), status_url: `${exchange.origin}/api/jobs/${id}` },
    },
  )
