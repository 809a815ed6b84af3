import { randomUUID } from 'node:crypto'
import { Failure } from '../../../core/failure.ts'
import type { MediaInput } from '../../../core/media/media.ts'
import { imageRules } from '../../../core/media/media-input.ts'
import { type Model, slotWaitMs } from '../../../core/models/model.ts'
import { parsed } from '../../../core/schemas/issues.ts'
import { type ImageTask, operationOf } from '../../../core/schemas/task.ts'
import type { JobRecord } from '../../../core/store/store.ts'
import {
  ImageEditForm,
  ImageEditRequest,
  ImageGenerationRequest,
  type ImageRequest,
  ImagesResponse,
  ImageVariationForm,
  ImageVariationRequest,
  imageRequests,
  maxSources,
} from '../../../core/tasks/image/image-request.ts'
import { readJson } from '../../http/body/body.ts'
import { formValues, isForm, readForm } from '../../http/body/multipart.ts'
import { errorGroups } from '../../http/request/errors.ts'
import type { ClientExchange } from '../../http/request/exchange.ts'
import { idempotencyKeyOf } from '../../http/request/idempotency.ts'
import type { Owners } from '../../http/request/owners.ts'
import { preferenceOf } from '../../http/request/prefer.ts'
import { routeOf } from '../../http/request/route.ts'
import { hasEnded, respondAsync } from '../../views/job-record.ts'
import { nameModel } from '../../work/run-call.ts'
import { answerLater } from '../../work/submit.ts'
import { type SubmitOwners, submitGeneration } from '../../work/submit-generation.ts'
import { failureOf, waitForEnd } from '../../work/wait.ts'
import { sendImageEvents, sendImages, unfinished } from './image-answer.ts'

/** A validated request for images. Its files are on the disk until the body is disposed of. */
interface ImageBody extends AsyncDisposable {
  /** The body as it was sent, with the files of a form as short addresses that are keys of `exchange.inline`. */
  sent: unknown
  request: ImageRequest
}

/** A route for images. */
interface ImageRoute {
  task: ImageTask
  /** Whether a request needs no prompt. */
  variation?: boolean
}

/** A variation is an edit with an empty prompt. */
const withoutPrompt = (sent: unknown) =>
  sent !== null && typeof sent === 'object' && (sent as { prompt?: unknown }).prompt == null
    ? { ...sent, prompt: '' }
    : sent

/** Reads JSON or a form. Throws Failure for an invalid request. */
async function readImageBody(
  { task, variation = false }: ImageRoute,
  exchange: ClientExchange,
  owners: Owners<'admission' | 'config' | 'cpu' | 'files'>,
): Promise<ImageBody> {
  const check = (sent: unknown) => checked(task, variation ? withoutPrompt(sent) : sent)
  if (!isForm(exchange.req)) return { ...check(await readJson(exchange, owners)), async [Symbol.asyncDispose]() {} }
  const form = await readForm(
    exchange,
    { files: { image: maxSources, mask: 1 }, maxBytes: imageRules.maxBytes },
    owners,
  )
  try {
    const sent = formValues(form.fields, imageRequests[operationOf(task)].shape)
    const inline = new Map<string, MediaInput>()
    for (const [name, files] of form.files) {
      const addresses = files.map(({ path, bytes }) => {
        // No client can have sent this name.
        const address = `form:${randomUUID()}`
        inline.set(address, { path, bytes })
        return address
      })
      sent[name] = addresses.length === 1 ? addresses[0] : addresses
    }
    exchange.inline = inline
    return { ...check(sent), [Symbol.asyncDispose]: () => form[Symbol.asyncDispose]() }
  } catch (thrown) {
    await form[Symbol.asyncDispose]()
    throw thrown
  }
}

const checked = (task: ImageTask, sent: unknown): Pick<ImageBody, 'sent' | 'request'> => ({
  sent,
  request: parsed(imageRequests[operationOf(task)], sent),
})

const route = routeOf({ tag: 'Images' })

type ImageOwners = SubmitOwners & Owners<'cpu' | 'fleet'>

/**
 * Answers an OpenAI-compatible request for images. The request becomes a durable job like any generation, and the caller
 * waits for its end: a repeated request with the same idempotency key gets the same images.
 */
async function answerImages(to: ImageRoute, exchange: ClientExchange, owners: ImageOwners) {
  const prefer = preferenceOf(exchange.req.headers.prefer)
  const { job, model, request } = await submit(to, exchange, owners)
  if (prefer.later) return answerLater(exchange, job)
  const completed = completedJob(job, model, exchange, prefer.waitMs, owners)
  if (request.stream) await sendImageEvents(exchange, { task: to.task, job, request, completed }, owners)
  else {
    const ended = await completed
    nameModel(exchange, ended)
    await sendImages(exchange, ended, request, owners)
  }
}

/** Submits the job. The files of the form are removed once they are stored as files of the job. */
async function submit(to: ImageRoute, exchange: ClientExchange, owners: ImageOwners) {
  await using body = await readImageBody(to, exchange, owners)
  const { sent, request } = body
  const target = { modelId: request.model, task: to.task }
  const { job, model } = await submitGeneration(exchange, { target, body: sent }, owners)
  const { status } = owners.fleet.snapshot().models[model.id] ?? { status: 'cold' }
  exchange.header('x-model-status', status)
  return { job, model, request }
}

/**
 * Resolves with the job when it is completed. Rejects with its Failure, or with that of a wait that is over. A client that
 * disconnects without a key cancels it.
 */
async function completedJob(
  job: JobRecord,
  model: Model,
  exchange: ClientExchange,
  waitMs: number,
  owners: Owners<'config' | 'jobs'>,
) {
  const wait = {
    waitMs: Math.min(waitMs, owners.config.limits.sync_wait),
    startMs: slotWaitMs(model),
    instead: "send the header 'Prefer: respond-async'",
  }
  const ended = await waitForEnd(exchange, job, wait, owners).catch(async (thrown: unknown) => {
    // Without an idempotency key no client can read this job: the id was never sent.
    if (exchange.disconnected && Failure.from(thrown).code === 'cancelled' && idempotencyKeyOf(exchange) === undefined)
      // A job that has ended meanwhile needs no cancellation.
      await owners.jobs.cancel(job.organizationId, job.id).catch(() => {})
    throw thrown
  })
  if (!hasEnded(ended)) throw unfinished(exchange, ended)
  if (ended.status !== 'completed') throw failureOf(ended)
  return ended
}

const facts = {
  bucket: 'jobs',
  response: ImagesResponse,
  events: 'ImageEvent',
  otherAnswers: respondAsync,
  errorCodes: [...errorGroups.submit, ...errorGroups.media, ...errorGroups.wait],
} as const
/** An image of one pixel, so that the example needs no URL. */
const pixel =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVQImWNgaGgAAAGEAQEDkg2VAAAAAElFTkSuQmCC'

const how =
  'The answer has the images in `data`, as URLs or in base64, and in `images` with their sizes. It comes when they are there, or after 120 s as 504 with the id of the job, which continues. The id of the job is in the header `x-job-id`; with `Prefer: respond-async` the job is the answer. A client that disconnects cancels the job, unless it sent an `Idempotency-Key`. With `stream: true` the images come as server-sent events; with `partial_images` unfinished ones come before them, if the engine shows any.'

export const imageRoutes = (owners: ImageOwners) => [
  route('POST /std/v1/images/generations', 'user:write', {
    ...facts,
    summary: 'Create images',
    description: `Creates images from a text. ${how}`,
    body: ImageGenerationRequest,
    example: { model: 'infer/demo', prompt: 'A cat on a mat', size: '512x512' },
    answer: exchange => answerImages({ task: 'std/image-generation' }, exchange, owners),
  }),
  route('POST /std/v1/images/edits', 'user:write', {
    ...facts,
    summary: 'Edit image',
    description: `Creates images from one or more images and a text. With a mask only a part of the image is created anew. Send image and mask as files of a form, or in JSON as URLs or ids of files. ${how}`,
    largeBody: true,
    body: ImageEditRequest,
    form: ImageEditForm,
    example: { model: 'infer/demo', prompt: 'A dog on a mat', image: pixel },
    answer: exchange => answerImages({ task: 'std/image-edit' }, exchange, owners),
  }),
  route('POST /std/v1/images/variations', 'user:write', {
    ...facts,
    summary: 'Create variations of image',
    description: `Creates images from an image alone, with models that need no prompt (feature \`variations\`). Otherwise the same as \`/std/v1/images/edits\`. ${how}`,
    largeBody: true,
    body: ImageVariationRequest,
    form: ImageVariationForm,
    example: { model: 'infer/demo', image: pixel, size: '512x512' },
    answer: exchange => answerImages({ task: 'std/image-edit', variation: true }, exchange, owners),
  }),
]
