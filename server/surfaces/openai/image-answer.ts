import type { FileHandle } from 'node:fs/promises'
import { Failure } from '../../../core/failure.ts'
import { queueIdOf } from '../../../core/ids.ts'
import type { FileRecord, JobRecord } from '../../../core/store/store.ts'
import type { ImageRequest } from '../../../core/tasks/image/image-request.ts'
import { type ImageResult, linkedImages } from '../../../core/tasks/image/image-result.ts'
import { base64PiecesOf } from '../../http/answer/send-pieces.ts'
import { sendJson } from '../../http/dispatch.ts'
import type { Call } from '../../http/request/call.ts'
import { Embedded, JsonText, readResult } from '../../http/request/json-text.ts'
import type { Owners } from '../../http/request/owners.ts'

const quote = Buffer.from('"')

const expired = ({ id }: JobRecord) =>
  new Failure('output_expired', `The images of job ${id} are no longer kept. Send the request again.`)

/** The images of a completed job. */
export interface JobImages {
  result: ImageResult
  /** Returns each image as a JSON string in base64. Its file is read while it is sent, in a few pieces at a time. */
  base64: (() => AsyncGenerator<Uint8Array>)[]
}

/** Reads the result of a job and checks that its images still exist. Throws Failure `output_expired`. */
export async function imagesOf(call: Call, job: JobRecord, { files }: Pick<Owners, 'files'>): Promise<JobImages> {
  if (job.result === null) throw expired(job)
  const result = JSON.parse(await readResult(job.result)) as ImageResult
  const records = await Promise.all(result.images.map(({ file_id }) => files.find(job.organizationId, file_id)))
  const images = records.filter(record => record !== undefined)
  if (images.length < records.length) throw expired(job)

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
  return { result, base64: images.map(image => () => base64(image)) }
}

/** Sends the images of a job as JSON in the requested format. Throws Failure `output_expired`. */
export async function sendImages(
  call: Call,
  job: JobRecord,
  request: ImageRequest,
  owners: Pick<Owners, 'files'>,
): Promise<void> {
  const { result, base64 } = await imagesOf(call, job, owners)
  const origin = call.origin
  const linked = linkedImages(result, file => owners.files.link(file, origin))
  const inBase64 = request.response_format === 'b64_json' || request.response_format === 'base64'
  if (!inBase64) return sendJson(call, new JsonText(JSON.stringify(linked)))
  const embedded = base64.map(read => new Embedded(read))
  const data = linked.data.map(({ url: _address, ...facts }, at) => ({ b64_json: embedded[at], ...facts }))
  await sendJson(call, new JsonText(JSON.stringify({ ...linked, data }), 200, embedded))
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
