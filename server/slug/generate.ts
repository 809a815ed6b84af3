import { z } from 'zod'
import { queueIdOf } from '../../core/ids.ts'
import type { JobRecord } from '../../core/store/store.ts'
import { generationRequests } from '../../core/tasks/generation/request.ts'
import type { Call } from '../call.ts'
import { errorGroups } from '../docs/route-errors.ts'
import type { Owners } from '../owners.ts'
import { preferenceOf } from '../prefer.ts'
import { JsonText, route } from '../route.ts'
import { slugErrors } from './errors.ts'
import { jobTermsOf } from './job-terms.ts'
import { requestUrls } from './request-urls.ts'
import { GenerationRequestView } from './requests.ts'
import { type SubmitOwners, type SubmittedGeneration, submitGeneration } from './submit.ts'
import { answerInSync } from './sync.ts'
import { urlsOf } from './view.ts'

const tag = 'Generation'

/** The schema depends on the slug, so the body is validated once the slug is known. */
const GenerationBody = z.looseObject({}).meta({
  id: 'GenerationRequest',
  description: 'The inputs of the task of the slug. Its type is in `GET /api/model-status`.',
  anyOf: Object.values(generationRequests).map(schema => ({
    $ref: `#/components/schemas/${z.globalRegistry.get(schema)!.id}`,
  })),
})

export const Accepted = z
  .object({
    request_id: z.string().describe('Id of the request: `q_…`.'),
    status: z.literal('processing'),
    queue_position: z.int().describe('How many requests are before it.'),
    ...requestUrls,
  })
  .meta({ id: 'GenerationAccepted', description: 'A request that was accepted.' })

const One = z.object({
  slug: z.string().max(512).describe('Slug of a model and task, as in `GET /api/model-status`. It may contain `/`.'),
})

const SubmitQuery = z.strictObject({
  webhook_url: z
    .string()
    .optional()
    .describe(
      'URL to which the end of the request is sent as a signed message. The header `X-Webhook-Url` does the same.',
    ),
  fal_webhook: z.string().optional().describe("The same with fal's body and signature."),
})

type GenerateOwners = SubmitOwners & Pick<Owners, 'fleet'>

/** Returns the answer to a submission whose caller does not wait for the result. */
function accepted(call: Call, job: JobRecord, { jobs }: Pick<Owners, 'jobs'>): z.input<typeof Accepted> {
  const request_id = queueIdOf(job.id)
  const urls = urlsOf(request_id, call)
  call.header('location', urls.response_url)
  const { queuePosition } = jobs.progressOf(job)
  return { request_id, status: 'processing', queue_position: queuePosition ?? 0, ...urls }
}

async function submit(call: Call, slug: string, body: unknown, owners: GenerateOwners): Promise<SubmittedGeneration> {
  const terms = jobTermsOf(call, owners)
  const submitted = await submitGeneration(call, { target: { slug }, body, terms, strict: true }, owners)
  const { id, modelId } = submitted.job
  call.header('x-fal-request-id', queueIdOf(id))
  const { status } = owners.fleet.snapshot().models[modelId] ?? { status: 'cold' }
  call.header('x-model-status', status)
  return submitted
}

const how =
  'The slug of each model and task is in `GET /api/model-status`. Images, videos and audio are http(s) URLs, `data:` URLs or ids of files. The headers `X-Fal-Request-Timeout` (seconds), `X-Fal-Queue-Priority` (`low` or `normal`) and `X-Fal-Object-Lifecycle-Preference` (JSON) set when the request must begin, its priority, and how long it is kept.'

const submitFacts = {
  method: 'POST',
  scope: 'user:write',
  bucket: 'jobs',
  tag,
  params: One,
  query: SubmitQuery,
  body: GenerationBody,
  example: { prompt: 'A cat on a mat' },
  largeBody: true,
  response: Accepted,
  status: 202,
  errors: slugErrors,
} as const

export const generateRoutes = (owners: GenerateOwners) => [
  route({
    ...submitFacts,
    path: '/slug/queue/submit/**:slug',
    summary: 'Submit request to queue',
    description: `Creates an image or a video in the background and answers at once. ${how}`,
    errorCodes: [...errorGroups.submit, ...errorGroups.media],
    handle: async ({ params, body }, call) =>
      accepted(call, (await submit(call, params.slug, body, owners)).job, owners),
  }),
  route({
    ...submitFacts,
    path: '/slug/**:slug',
    summary: 'Create image or video',
    description: `Creates an image or a video in the background and answers at once. With \`sync_mode: true\` or \`Prefer: wait=30\` the answer comes with the result, or as 504 with the ids if it is not there in time; the request then continues. ${how}`,
    otherAnswers: {
      200: { response: GenerationRequestView, description: 'The result, with `sync_mode: true` or `Prefer: wait`.' },
    },
    errorCodes: [...errorGroups.submit, ...errorGroups.media, ...errorGroups.wait],
    handle: async ({ params, body }, call) => {
      const prefer = preferenceOf(call.req.headers.prefer)
      const { job, model, syncMode } = await submit(call, params.slug, body, owners)
      const wait = !prefer.later && (syncMode || prefer.wait)
      if (prefer.later) call.header('preference-applied', 'respond-async')
      if (!wait) return accepted(call, job, owners)
      return (await answerInSync(call, job, model, prefer.waitMs, owners)) satisfies JsonText
    },
  }),
]
