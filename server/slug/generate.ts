import { z } from 'zod'
import { queueIdOf } from '../../core/ids.ts'
import type { JobRecord } from '../../core/store/store.ts'
import { generationRequests } from '../../core/tasks/generation/request.ts'
import type { Call } from '../call.ts'
import type { Owners } from '../owners.ts'
import { preferenceOf } from '../prefer.ts'
import { JsonText, route } from '../route.ts'
import { slugErrors } from './errors.ts'
import { jobTermsOf } from './job-terms.ts'
import { type SubmitOwners, type SubmittedGeneration, submitGeneration } from './submit.ts'
import { answerInSync } from './sync.ts'
import { urlsOf } from './view.ts'

const tag = 'Generation'

/** Which of the shapes it has depends on the slug, so each is checked when that is known. */
const GenerationBody = z.looseObject({}).meta({
  id: 'GenerationRequest',
  description: 'The inputs of the task that the slug leads to.',
  anyOf: Object.values(generationRequests).map(schema => ({
    $ref: `#/components/schemas/${z.globalRegistry.get(schema)!.id}`,
  })),
})

export const Accepted = z
  .object({
    request_id: z.string(),
    status: z.literal('processing'),
    queue_position: z.int().describe('How many requests are before it.'),
    response_url: z.string(),
    status_url: z.string(),
    cancel_url: z.string(),
    stream_url: z.string(),
  })
  .meta({ id: 'GenerationAccepted' })

const One = z.object({ slug: z.string().max(512) })

const notYet = z.string().optional().describe('Not supported yet: refused unless empty.')
const SubmitQuery = z.strictObject({ webhook_url: notYet, fal_webhook: notYet })

type GenerateOwners = SubmitOwners & Pick<Owners, 'fleet'>

/** What a submit is answered with while nobody waits for the end. */
function accepted(call: Call, job: JobRecord, { jobs }: Pick<Owners, 'jobs'>): z.input<typeof Accepted> {
  const request_id = queueIdOf(job.id)
  const urls = urlsOf(request_id, call)
  call.header('location', urls.response_url)
  const { queuePosition } = jobs.progressOf(job)
  return { request_id, status: 'processing', queue_position: queuePosition ?? 0, ...urls }
}

async function submit(call: Call, slug: string, body: unknown, owners: GenerateOwners): Promise<SubmittedGeneration> {
  const terms = jobTermsOf(call)
  const submitted = await submitGeneration(call, { target: { slug }, body, terms, strict: true }, owners)
  const { id, modelId } = submitted.job
  call.header('x-fal-request-id', queueIdOf(id))
  const { status } = owners.fleet.snapshot().models[modelId] ?? { status: 'cold' }
  call.header('x-model-status', status)
  return submitted
}

const how =
  'The slug of each model and task is in `GET /api/model-status`. Pictures, videos and sounds are sent as http(s) or `data:` addresses or as ids of files.'

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
    summary: 'Ask for a picture or a video, and hear at once where it will be',
    description: how,
    handle: async ({ params, body }, call) =>
      accepted(call, (await submit(call, params.slug, body, owners)).job, owners),
  }),
  route({
    ...submitFacts,
    path: '/slug/**:slug',
    summary: 'Ask for a picture or a video',
    description: `${how} With \`sync_mode\` or \`Prefer: wait=30\` the request is held until the result is there: 200 with the same object as \`GET /slug/requests/{id}\`, or 504 with the ids while it goes on.`,
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
