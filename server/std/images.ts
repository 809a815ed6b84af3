import { Failure } from '../../core/failure.ts'
import type { Model } from '../../core/models/model.ts'
import type { ImageTask } from '../../core/schemas/task.ts'
import type { JobRecord } from '../../core/store/store.ts'
import {
  ImageEditForm,
  ImageEditRequest,
  ImageGenerationRequest,
  type ImageRequest,
  ImagesResponse,
} from '../../core/tasks/image/image-request.ts'
import { hasEnded } from '../api/job-record.ts'
import type { Call } from '../call.ts'
import { idempotencyKeyOf } from '../idempotency.ts'
import { preferenceOf } from '../prefer.ts'
import { route } from '../route.ts'
import { submitGeneration } from '../slug/submit.ts'
import { failureOf, waitForEnd } from '../slug/sync.ts'
import { answerLater } from '../submit.ts'
import { sendImages, unfinished } from './image-answer.ts'
import { readImageBody } from './image-body.ts'

/**
 * Pictures in the words of an OpenAI-style API. The request is a durable job like any generation, and its caller stays
 * on the line until it has ended: who asks again under the same key gets the same pictures.
 */
async function images(task: ImageTask, call: Call): Promise<void> {
  const prefer = preferenceOf(call.req.headers.prefer)
  const { job, model, request } = await submit(task, call)
  if (prefer.later) return answerLater(call, job)
  const ended = await endOf(job, model, call, prefer.waitMs)
  if (!hasEnded(ended)) throw unfinished(call, ended)
  if (ended.status !== 'completed') throw failureOf(ended)
  await sendImages(call, task, ended, request)
}

/** The files of a form are gone when the job has its own. */
async function submit(task: ImageTask, call: Call): Promise<{ job: JobRecord; model: Model; request: ImageRequest }> {
  await using body = await readImageBody(task, call)
  const { sent, request } = body
  const { job, model } = await submitGeneration(
    call,
    { target: { modelId: request.model, task }, body: sent },
    call.owners,
  )
  const { status } = call.owners.fleet.snapshot().models[model.id] ?? { status: 'cold' }
  call.header('x-model-status', status)
  return { job, model, request }
}

/** The job when it has ended, or as it is when nobody may wait longer. Who hangs up wants it no more. */
async function endOf(job: JobRecord, model: Model, call: Call, waitMs: number): Promise<JobRecord> {
  const { config, jobs } = call.owners
  try {
    return await waitForEnd(
      call,
      job,
      {
        waitMs: Math.min(waitMs, config.limits.sync_wait),
        startMs: model.dispatch_wait_ms,
        instead: "send the header 'Prefer: respond-async'",
      },
      call.owners,
    )
  } catch (thrown) {
    // Nobody knows its id. Who has named it by a key can come again and gets what it has made.
    if (call.left && Failure.from(thrown).code === 'cancelled' && idempotencyKeyOf(call) === undefined)
      // That it has ended meanwhile is as good.
      await jobs.cancel(job.organizationId, job.id).catch(() => {})
    throw thrown
  }
}

const facts = { method: 'POST', scope: 'user:write', bucket: 'jobs', tag: 'Images', response: ImagesResponse } as const
/** One pixel: an example that works wherever it is sent. */
const pixel =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVQImWNgaGgAAAGEAQEDkg2VAAAAAElFTkSuQmCC'

const how =
  'The pictures are files here, under `data` by address (or in base64) and under `images` with what they are. The request is held until they are there, 120 s at most; it is a job all the same, whose id is in the header `x-job-id`, and with `Prefer: respond-async` that is the answer. Who hangs up without an `Idempotency-Key` cancels it.'

export const imageRoutes = [
  route({
    ...facts,
    path: '/std/v1/images/generations',
    aliases: ['/v1/images/generations'],
    summary: 'Make pictures from a text',
    description: how,
    body: ImageGenerationRequest,
    example: { model: 'infer/demo', prompt: 'A cat on a mat', size: '512x512' },
    answer: call => images('std/image-generation', call),
  }),
  route({
    ...facts,
    path: '/std/v1/images/edits',
    aliases: ['/v1/images/edits'],
    summary: 'Make a picture from another one, or a part of it anew',
    description: `${how} A picture and its mask come as files of a form, or in JSON as addresses or ids of files.`,
    largeBody: true,
    body: ImageEditRequest,
    form: ImageEditForm,
    example: { model: 'infer/demo', prompt: 'A dog on a mat', image: pixel },
    answer: call => images('std/image-edit', call),
  }),
]
