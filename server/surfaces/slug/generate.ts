import { z } from 'zod'
import { Failure, invalid } from '../../../core/failure.ts'
import { jobIdOf, queueIdOf } from '../../../core/ids.ts'
import { type Model, slotWaitMs } from '../../../core/models/model.ts'
import { array, integer, namedObject, oneOf, optional, optionalString, string } from '../../../core/schemas/fields.ts'
import type { JobRecord } from '../../../core/store/store.ts'
import { generationRequests } from '../../../core/tasks/generation/request.ts'
import { type AspectRatio, aspectRatios } from '../../../core/tasks/generation/size.ts'
import { errorGroups, errorHeaders } from '../../http/request/errors.ts'
import type { ClientExchange } from '../../http/request/exchange.ts'
import { JsonText } from '../../http/request/json-text.ts'
import type { Owners } from '../../http/request/owners.ts'
import { preferenceOf } from '../../http/request/prefer.ts'
import { errorType, generationErrorBody, requestUrls } from '../../views/generation-request.ts'
import { hasEnded } from '../../views/job-record.ts'
import { jobTermsOf } from '../../work/job-terms.ts'
import { nameModel } from '../../work/run-call.ts'
import { submitAspectRatios } from '../../work/submit-aspect-ratios.ts'
import { type SubmitOwners, submitGeneration } from '../../work/submit-generation.ts'
import { failureOf, waitForEnd } from '../../work/wait.ts'
import { GenerationRequestView } from './requests.ts'
import { requestAnswer, slugRoute, urlsOf, type ViewOwners } from './view.ts'

/** Answers a synchronous caller: with the result, with the error, or with the addresses of the unfinished request. */
async function answerInSync(
  exchange: ClientExchange,
  job: JobRecord,
  model: Model,
  waitMs: number,
  owners: ViewOwners & Owners<'config'>,
): Promise<JsonText> {
  const { sync_wait: maxWaitMs } = owners.config.limits
  const ended = hasEnded(job)
    ? job
    : await waitForEnd(exchange, job, { waitMs: Math.min(waitMs, maxWaitMs), startMs: slotWaitMs(model) }, owners)
  const request_id = queueIdOf(ended.id)
  nameModel(exchange, ended)
  if (ended.status === 'completed') return requestAnswer(ended, exchange, owners, 200)
  const unfinished = !hasEnded(ended)
  const failure = unfinished
    ? new Failure('timeout', `Request ${request_id} has not ended yet and continues. Read it at its response_url.`)
    : failureOf(ended)
  const headers = errorHeaders(failure)
  if (!unfinished && errorType(ended) === 'startup_timeout') headers.push('x-fal-request-timeout-type', 'user')
  if (unfinished) headers.push('retry-after', '2', 'retry-after-ms', '2000')
  exchange.addHeaders(headers)
  const body = {
    ...generationErrorBody(failure, exchange.id),
    request_id,
    status: unfinished ? 'processing' : 'failed',
    job_id: jobIdOf(request_id),
    ...urlsOf(request_id, exchange),
  }
  return new JsonText(JSON.stringify(body), failure.status)
}

/** The other fields depend on the slug, so they are validated once the slug is known. */
const GenerationBody = z
  .looseObject({
    aspect_ratios: optional(
      z
        .array(z.enum(aspectRatios))
        .min(1)
        .max(aspectRatios.length)
        .refine(ratios => new Set(ratios).size === ratios.length, 'must not name an aspect ratio twice.'),
      'Makes one video for each of these aspect ratios, as requests of their own. Only for videos, and in place of `aspect_ratio`, `image_size`, `width`, `height` and `sync_mode`.',
    ),
  })
  .meta({
    id: 'GenerationRequest',
    description: 'The inputs of the task of the slug. Its type is in `GET /api/model-status`.',
    anyOf: Object.values(generationRequests).map(schema => ({
      $ref: `#/components/schemas/${z.globalRegistry.get(schema)!.id}`,
    })),
  })

const Accepted = namedObject('GenerationAccepted', 'A request that was accepted.', {
  request_id: string('Id of the request: `q_…`.'),
  status: z.literal('processing'),
  queue_position: integer('How many requests are before it.'),
  ...requestUrls,
})

/** The answer to a request with `aspect_ratios`. */
const AcceptedAll = namedObject('GenerationsAccepted', 'Several requests that were accepted together.', {
  status: z.literal('processing'),
  requests: array(
    'One request for each aspect ratio, in the order in which they were sent.',
    z.object({
      aspect_ratio: oneOf('Width to height of the video.', aspectRatios),
      ...Accepted.omit({ status: true }).shape,
    }),
  ),
})
const Submitted = z.union([Accepted, AcceptedAll]).meta({
  id: 'GenerationSubmitted',
  description: 'The request that was accepted; with `aspect_ratios` several.',
})

const One = z.object({
  slug: z.string().max(512).describe('Slug of a model and task, as in `GET /api/model-status`. It may contain `/`.'),
})

const SubmitQuery = z.strictObject({
  webhook_url: optionalString(
    'URL to which the end of the request is sent as a signed message. The header `X-Webhook-Url` does the same.',
  ),
  fal_webhook: optionalString("The same with fal's body and signature."),
})

type GenerateOwners = SubmitOwners & Owners<'fleet'>

/** Returns the id, the position and the addresses of a request that was accepted. */
function requestOf(exchange: ClientExchange, job: JobRecord, { jobs }: Owners<'jobs'>) {
  const request_id = queueIdOf(job.id)
  return { request_id, queue_position: jobs.progressOf(job).queuePosition ?? 0, ...urlsOf(request_id, exchange) }
}

/** Returns the answer to a submission whose caller does not wait for the result. */
function accepted(exchange: ClientExchange, job: JobRecord, owners: Owners<'jobs'>): z.input<typeof Accepted> {
  const { request_id, ...more } = requestOf(exchange, job, owners)
  exchange.header('location', more.response_url)
  return { request_id, status: 'processing', ...more }
}

type Body = z.output<typeof GenerationBody>

/** Submits one video for each aspect ratio, and returns the answer to all of them. */
async function submitAll(
  exchange: ClientExchange,
  slug: string,
  body: Body & { aspect_ratios: readonly AspectRatio[] },
  owners: GenerateOwners,
): Promise<z.input<typeof AcceptedAll>> {
  const { aspect_ratios: ratios } = body
  const jobs = await submitAspectRatios(exchange, { slug, body, ratios, terms: jobTermsOf(exchange, owners) }, owners)
  setModelStatus(exchange, jobs[0]!, owners)
  const requests = jobs.map((job, at) => ({ aspect_ratio: ratios[at]!, ...requestOf(exchange, job, owners) }))
  return { status: 'processing', requests }
}

const hasSeveralShapes = (body: Body): body is Body & { aspect_ratios: AspectRatio[] } =>
  body.aspect_ratios !== undefined

async function submit(exchange: ClientExchange, slug: string, body: unknown, owners: GenerateOwners) {
  const terms = jobTermsOf(exchange, owners)
  const submitted = await submitGeneration(exchange, { target: { slug }, body, terms, strict: true }, owners)
  exchange.header('x-fal-request-id', queueIdOf(submitted.job.id))
  setModelStatus(exchange, submitted.job, owners)
  return submitted
}

function setModelStatus(exchange: ClientExchange, { modelId }: JobRecord, { fleet }: Owners<'fleet'>) {
  const { status } = fleet.snapshot().models[modelId] ?? { status: 'cold' }
  exchange.header('x-model-status', status)
}

const how =
  'The slug of each model and task is in `GET /api/model-status`. Images, videos and audio are http(s) URLs, `data:` URLs or ids of files. The headers `X-Fal-Request-Timeout` (seconds), `X-Fal-Queue-Priority` (`low` or `normal`) and `X-Fal-Object-Lifecycle-Preference` (JSON) set when the request must begin, its priority, and how long it is kept.'

const submitFacts = {
  bucket: 'jobs',
  params: One,
  query: SubmitQuery,
  body: GenerationBody,
  example: { prompt: 'A cat on a mat' },
  largeBody: true,
  response: Submitted,
  status: 202,
} as const

export const generateRoutes = (owners: GenerateOwners) => [
  slugRoute('POST /slug/queue/submit/**:slug', 'user:write', {
    ...submitFacts,
    summary: 'Submit request to queue',
    description: `Creates an image or a video in the background and answers at once. ${how}`,
    errorCodes: [...errorGroups.submit, ...errorGroups.media],
    handle: async ({ params, body }, exchange) =>
      hasSeveralShapes(body)
        ? submitAll(exchange, params.slug, body, owners)
        : accepted(exchange, (await submit(exchange, params.slug, body, owners)).job, owners),
  }),
  slugRoute('POST /slug/**:slug', 'user:write', {
    ...submitFacts,
    summary: 'Create image or video',
    description: `Creates an image or a video in the background and answers at once. With \`sync_mode: true\` or \`Prefer: wait=30\` the answer comes with the result, or as 504 with the ids if it is not there in time; the request then continues. With \`aspect_ratios\` one call makes several videos and answers with a request for each. ${how}`,
    otherAnswers: {
      200: { response: GenerationRequestView, description: 'The result, with `sync_mode: true` or `Prefer: wait`.' },
    },
    errorCodes: [...errorGroups.submit, ...errorGroups.media, ...errorGroups.wait],
    handle: async ({ params, body }, exchange) => {
      if (hasSeveralShapes(body)) {
        if (body.sync_mode === true)
          throw invalid(
            'sync_mode',
            "'sync_mode' waits for one result, and 'aspect_ratios' makes several. Remove 'sync_mode', and read each request at its response_url.",
          )
        return submitAll(exchange, params.slug, body, owners)
      }
      const prefer = preferenceOf(exchange.req.headers.prefer)
      const { job, model, syncMode } = await submit(exchange, params.slug, body, owners)
      const wait = !prefer.later && (syncMode || prefer.wait)
      if (prefer.later) exchange.header('preference-applied', 'respond-async')
      if (!wait) return accepted(exchange, job, owners)
      return (await answerInSync(exchange, job, model, prefer.waitMs, owners)) satisfies JsonText
    },
  }),
]
