import { Failure } from '../../core/failure.ts'
import { linkedImages } from '../../core/files/links.ts'
import { queueIdOf } from '../../core/ids.ts'
import type { JobRecord } from '../../core/store/store.ts'
import type { ImageRequest } from '../../core/tasks/generation/image-request.ts'
import { type ImageResult, imageUsage } from '../../core/tasks/generation/image-result.ts'
import type { ImageTask } from '../../core/tasks/tasks.ts'
import type { Call } from '../call.ts'
import { sendJson } from '../dispatch.ts'
import { Embedded, readResult } from '../embedded.ts'
import { originOf } from '../origin.ts'
import { JsonText } from '../route.ts'
import { EventStream } from '../sse.ts'

const expired = ({ id }: JobRecord) =>
  new Failure('output_expired', `The pictures of the job ${id} are no longer kept. Ask for them anew.`)

/** Sends what a job has made the way that it was asked for. Throws Failure `output_expired`. */
export async function sendImages(call: Call, task: ImageTask, job: JobRecord, request: ImageRequest): Promise<void> {
  const { files } = call.owners
  if (job.result === null) throw expired(job)
  const result = JSON.parse(await readResult(job.result)) as ImageResult
  const records = await Promise.all(result.images.map(({ file_id }) => files.find(job.organizationId, file_id)))
  const pictures = records.filter(record => record !== undefined)
  if (pictures.length < records.length) throw expired(job)

  async function base64(at: number): Promise<string> {
    await using file = await files.open(pictures[at]!)
    if (!file) throw expired(job)
    return (await file.readFile()).toString('base64')
  }

  if (request.stream) return sendEvents(call, task, result, request, base64)
  const origin = originOf(call)
  const answer = linkedImages(result, file => files.link(file, origin))
  if (request.response_format !== 'b64_json') return sendJson(call, new JsonText(JSON.stringify(answer)))
  // Read when their turn comes, so that one of them is in memory at a time.
  const embedded = pictures.map((_, at) => new Embedded(async () => Buffer.from(`"${await base64(at)}"`, 'latin1')))
  const data = answer.data.map(({ url: _address, ...facts }, at) => ({ b64_json: embedded[at], ...facts }))
  await sendJson(call, new JsonText(JSON.stringify({ ...answer, data }), 200, embedded))
}

const events: Record<ImageTask, string> = {
  'std/image-generation': 'image_generation.completed',
  'std/image-edit': 'image_edit.completed',
}

/** As events name it: the older words are not among them. */
const eventQuality = {
  auto: 'auto',
  low: 'low',
  medium: 'medium',
  high: 'high',
  standard: 'medium',
  hd: 'high',
} as const

/** One event for each picture. No engine shows unfinished ones, so none go before them. */
async function sendEvents(
  call: Call,
  task: ImageTask,
  { created, images, size, output_format }: ImageResult,
  { quality, background }: ImageRequest,
  base64: (at: number) => Promise<string>,
): Promise<void> {
  const first = await base64(0)
  const stream = new EventStream(call)
  try {
    for (const at of images.keys()) {
      await stream.caughtUp()
      if (stream.ended) return
      const event = {
        type: events[task],
        b64_json: at === 0 ? first : await base64(at),
        created_at: created,
        size,
        quality: eventQuality[quality ?? 'auto'],
        background: background ?? 'auto',
        output_format,
        usage: imageUsage,
      }
      stream.send({ event: event.type, data: JSON.stringify(event) })
    }
  } finally {
    stream.end()
  }
}

/** What is told while the pictures are still to come. */
export const unfinished = (call: Call, { id }: JobRecord): Failure =>
  new Failure(
    'timeout',
    `The pictures are not ready yet. The job ${id} goes on: ask for it at its status_url, or begin with the header 'Prefer: respond-async'.`,
    {
      retryAfterMs: 2_000,
      facts: { job_id: id, request_id: queueIdOf(id), status_url: `${originOf(call)}/api/jobs/${id}` },
    },
  )
