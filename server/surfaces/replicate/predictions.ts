import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import { Failure, invalid } from '../../../core/failure.ts'
import { isId, jobIdOf } from '../../../core/ids.ts'
import {
  anyObject,
  anything,
  array,
  looseObject,
  namedObject,
  nullableString,
  nullish,
  nullishBoolean,
  oneOf,
  optional,
  optionalString,
  optionalStringUpTo,
  string,
} from '../../../core/schemas/fields.ts'
import { isSlugTask } from '../../../core/schemas/task.ts'
import type { RequestWebhook } from '../../../core/store/store.ts'
import { predictionTask } from '../../../core/tasks/prediction-task.ts'
import { openChangeFlag } from '../../http/answer/follow.ts'
import { openEventStream } from '../../http/answer/sse.ts'
import { errorGroups, found } from '../../http/request/errors.ts'
import type { ClientExchange } from '../../http/request/exchange.ts'
import { JsonText } from '../../http/request/json-text.ts'
import type { Owners } from '../../http/request/owners.ts'
import { preferenceOf } from '../../http/request/prefer.ts'
import { findRequest } from '../../views/generation-request.ts'
import { hasEnded } from '../../views/job-record.ts'
import { jobWebhookTypes } from '../../work/job-terms.ts'
import type { JobTerms } from '../../work/submit.ts'
import { submitGeneration } from '../../work/submit-generation.ts'
import { parsedInputs, type SubmitterOwners, submitters } from '../../work/submitters.ts'
import { waitForEnd } from '../../work/wait.ts'
import {
  errorOfPrediction,
  findReplicateModel,
  ofReplicate,
  outputOfPrediction,
  predictionText,
  replicateRoute,
} from './view.ts'

const pingMs = 10_000
const minIntervalMs = 100

type StreamOwners = Owners<'files' | 'jobs'>

/** An event may have several lines of data. */
const lines = (text: string) => text.replaceAll(/\r?\n/g, '\ndata: ')

async function stream(exchange: ClientExchange, { files, jobs }: StreamOwners) {
  const { id = '', org: organization = '' } = exchange.params
  const { query } = exchange
  if (!files.verify(id, query.get('exp') ?? '', query.get('sig') ?? ''))
    throw new Failure(
      'invalid_signature',
      'The signature of this URL is invalid or has expired. Read the prediction again for a new URL.',
    )
  const first = found(isId(id) && (await jobs.find(organization, jobIdOf(id))), 'Prediction', id)
  const events = await openEventStream(exchange, { pingMs, generation: true })
  const changes = openChangeFlag(events)
  const stop = jobs.follow(first.id, changes.set)
  let logged = 0
  try {
    while (!events.ended) {
      const job = await jobs.find(organization, first.id)
      if (!job) throw new Failure('not_found', `Prediction ${id} was removed while it was streamed.`)
      const logs = await jobs.logs(job)
      for (const { message } of logs.slice(logged)) events.send({ event: 'logs', data: lines(message) })
      logged = Math.max(logged, logs.length)
      if (hasEnded(job)) {
        const error = errorOfPrediction(job)
        const output = job.status === 'completed' ? await outputOfPrediction(job, exchange, { files, jobs }) : []
        for (const one of [output].flat())
          events.send({ event: 'output', data: lines(typeof one === 'string' ? one : JSON.stringify(one)) })
        if (error !== null) events.send({ event: 'error', data: lines(error) })
        else
          events.send({ event: 'done', data: JSON.stringify(job.status === 'cancelled' ? { reason: 'canceled' } : {}) })
        break
      }
      await events.caughtUp()
      await changes.wait()
      await delay(minIntervalMs)
    }
  } catch (thrown) {
    const failure = Failure.from(thrown)
    events.send({ event: 'error', data: lines(failure.message) })
    throw failure
  } finally {
    stop()
    events.end()
  }
}

const maxWaitMs = 60_000

const id = string('Id of the prediction: `q_…`.')
const Prediction = looseObject('ReplicatePrediction', "A job in Replicate's form.", {
  id,
  model: string('Name of the model: `owner/name`.'),
  version: string('The version of the model.'),
  status: oneOf('State of the prediction.', ['starting', 'processing', 'succeeded', 'failed', 'canceled']),
  input: anything('The inputs, as they are stored.'),
  output: anything('Addresses of files, a list of texts, or another result; null before the end.'),
  error: nullableString('Why it failed; null if it did not.'),
  logs: string('Lines that the engine logged.'),
  created_at: string('ISO 8601, UTC.'),
  urls: z.record(z.string(), z.string()).describe('Where to read, cancel and stream it. `stream` needs no token.'),
})
const Page = namedObject('ReplicatePredictions', 'A page of predictions.', {
  previous: z.null().describe('Always null.'),
  next: nullableString('URL of the next page; null on the last one.'),
  results: array('The predictions, newest first, without inputs and outputs.', Prediction),
})

const events = ['start', 'output', 'logs', 'completed'] as const
const fields = {
  input: anyObject('Inputs of the model.'),
  webhook: nullish(
    z.string(),
    'URL to which the prediction is sent. Verify it with the secret of `/replicate/v1/webhooks/default/secret`.',
  ),
  webhook_events_filter: nullish(
    z.array(z.enum(events)),
    'Events for which it is sent: `start`, `completed`. There are none of `output` and `logs`, and a filter of only these is refused.',
  ),
  stream: nullishBoolean('Ignored: every prediction has a stream.'),
}
const Create = namedObject('ReplicatePredictionRequest', 'A prediction to run.', {
  version: optional(z.string().min(1).max(256), 'Version of a model, or `owner/name`.'),
  model: optional(z.string().min(1).max(256), '`owner/name`, in place of `version`.'),
  ...fields,
})
const CreateOfModel = namedObject('ReplicateModelPredictionRequest', 'A prediction to run.', fields)

type PredictionBody = z.output<typeof CreateOfModel>

/** Types of our events by those of Replicate. */
const eventTypes: Record<(typeof events)[number], readonly string[]> = {
  start: ['job.started'],
  output: [],
  logs: [],
  completed: jobWebhookTypes.usual,
}

function webhookOf(
  { webhook, webhook_events_filter: filter }: PredictionBody,
  exchange: ClientExchange,
  { webhooks }: Pick<SubmitterOwners, 'webhooks'>,
): RequestWebhook | undefined {
  if (webhook == null) return undefined
  const types = (filter?.length ? filter : events).flatMap(event => eventTypes[event])
  if (types.length === 0)
    throw invalid(
      'webhook_events_filter',
      "'webhook_events_filter' has only 'output' and 'logs', for which no webhooks are sent here. Add 'start' or 'completed', or stream the prediction.",
      'unsupported_parameter',
    )
  const named = { url: 'webhook', eventTypes: 'webhook_events_filter', types: jobWebhookTypes.all }
  return webhooks.ofRequest(
    {
      url: webhook,
      eventTypes: types,
      form: 'standard',
      origin: exchange.origin,
    },
    named,
  )
}

const units = { s: 1_000, m: 60_000, h: 3_600_000 } as const

/** Reads the header `Cancel-After`: `90`, `90s`, `1m30s`. */
function cancelAfterMs(header: string | string[] | undefined) {
  if (header === undefined) return undefined
  const text = String(header).trim()
  const parts = [...text.matchAll(/(\d{1,6})([smh]?)/g)]
  const ms = parts.reduce((sum, [, count, unit]) => sum + Number(count) * units[(unit || 's') as keyof typeof units], 0)
  if (/^(\d{1,6}[smh]?)+$/.test(text) && ms >= 5_000 && ms <= 7 * 86_400_000) return ms
  throw invalid('Cancel-After', "'Cancel-After' must be a time from 5s to 168h, such as 90s or 1m30s.")
}

async function submit(exchange: ClientExchange, name: string, body: PredictionBody, owners: SubmitterOwners) {
  const model = findReplicateModel(name, exchange, owners)
  const sent = parsedInputs(exchange, 'a prediction', exchange.texts.get('input') ?? body.input, owners) as Record<
    string,
    unknown
  >
  const { id: task, runner, prediction } = predictionTask(model, sent)
  const inputs = prediction.request(sent)
  const limitMs = cancelAfterMs(exchange.req.headers['cancel-after'])
  const terms: JobTerms = {
    metadata: ofReplicate,
    webhook: webhookOf(body, exchange, owners),
    startTimeoutMs: limitMs,
    timeoutMs: limitMs,
  }
  if (isSlugTask(task))
    return (await submitGeneration(exchange, { target: { modelId: model.id, task }, body: inputs, terms }, owners)).job
  return submitters[runner].create(exchange, { task, modelId: model.id, inputs, terms, body }, owners)
}

async function create(exchange: ClientExchange, name: string, body: PredictionBody, owners: SubmitterOwners) {
  const job = await submit(exchange, name, body, owners)
  const prefer = preferenceOf(exchange.req.headers.prefer)
  const waitMs = prefer.wait ? Math.min(prefer.waitMs, maxWaitMs) : 0
  const now = waitMs > 0 ? await waitForEnd(exchange, job, { waitMs, startMs: waitMs }, owners) : job
  return new JsonText(await predictionText(now, exchange, owners, { waits: !hasEnded(now) }), 201)
}

const submitFacts = {
  bucket: 'jobs',
  largeBody: true,
  bodyTexts: { members: ['input'], without: [] },
  response: Prediction,
  status: 201,
  errorCodes: [...errorGroups.submit, ...errorGroups.media, 'shutting_down', 'cancelled'],
} as const
const how =
  'With the header `Prefer: wait` the answer comes with the output, or after 60 s without it (`Prefer: wait=5` after 5 s). `Cancel-After: 90s` ends a prediction that takes longer. Of a model with several tasks the inputs decide which one runs.'

export const predictionRoutes = (owners: SubmitterOwners) => [
  replicateRoute('POST /replicate/v1/predictions', 'user:write', {
    ...submitFacts,
    summary: 'Create prediction',
    description: `Runs a model as a durable job. ${how}`,
    body: Create,
    example: { version: 'infer/tiny-chat', input: { prompt: 'Hello!' } },
    handle: ({ body }, exchange) => {
      const name = body.version ?? body.model
      if (name !== undefined) return create(exchange, name, body, owners)
      throw invalid('version', "'version' is required: a version, or owner/name.", 'missing_required_parameter')
    },
  }),
  replicateRoute('POST /replicate/v1/models/:owner/:name/predictions', 'user:write', {
    ...submitFacts,
    summary: 'Create prediction of model',
    description: `Runs a model as a durable job. ${how}`,
    params: z.object({
      owner: string('First part of the id of the model, or `local` for an id of one part.'),
      name: string('The rest of the id.'),
    }),
    body: CreateOfModel,
    example: { input: { prompt: 'Hello!' } },
    handle: ({ params, body }, exchange) => create(exchange, `${params.owner}/${params.name}`, body, owners),
  }),
  replicateRoute('GET /replicate/v1/predictions', 'user:read', {
    summary: 'List predictions',
    description: 'Returns background jobs of the organization as predictions, newest first.',
    query: z.object({ cursor: optionalStringUpTo(64, 'From `next`. Default: the first page.') }),
    response: Page,
    handle: async ({ query }, exchange) => {
      const after = query.cursor === undefined ? {} : { after: query.cursor }
      const { jobs, next } = await owners.jobs.list(exchange.caller.organizationId, {
        limit: 100,
        kind: 'async',
        ...after,
      })
      const results = await Promise.all(jobs.map(job => predictionText(job, exchange, owners, { brief: true })))
      const url = next === null ? null : `${exchange.origin}/replicate/v1/predictions?cursor=${next}`
      return new JsonText(`{"previous":null,"next":${JSON.stringify(url)},"results":[${results.join(',')}]}`)
    },
  }),
  replicateRoute('GET /replicate/v1/predictions/:id', 'user:read', {
    summary: 'Get prediction',
    description: 'Returns a prediction. Other background jobs of the organization can be read as predictions too.',
    errorCodes: ['not_found', 'output_expired'],
    params: z.object({ id }),
    response: Prediction,
    handle: async ({ params }, exchange) =>
      new JsonText(await predictionText(await findRequest(params.id, exchange, owners), exchange, owners)),
  }),
  replicateRoute('POST /replicate/v1/predictions/:id/cancel', 'user:write', {
    bucket: 'api',
    summary: 'Cancel prediction',
    description: 'Cancels a prediction; its engine stops at once. One that has ended is returned unchanged.',
    errorCodes: ['not_found', 'output_expired'],
    params: z.object({ id }),
    response: Prediction,
    handle: async ({ params }, exchange) => {
      const job = await findRequest(params.id, exchange, owners)
      if (!hasEnded(job))
        await owners.jobs.cancel(job.organizationId, job.id).catch((thrown: unknown) => {
          if (!(thrown instanceof Failure) || thrown.code !== 'job_already_finished') throw thrown
        })
      return new JsonText(await predictionText(await findRequest(params.id, exchange, owners), exchange, owners))
    },
  }),
  replicateRoute('GET /replicate/v1/stream/:org/:id', 'public', {
    summary: 'Stream prediction',
    description:
      'Sends `logs` while a prediction runs, `output` when it has ended, and `done` or `error` at the end. The address is `urls.stream` of a prediction, whose signature is the right to read it.',
    media: ['text/event-stream'],
    errorCodes: ['invalid_signature', 'not_found', 'shutting_down'],
    params: z.object({
      org: string('Id of the organization of the prediction.'),
      id: string('Id of the prediction.'),
    }),
    query: z.object({
      exp: optionalString('When the address expires.'),
      sig: optionalString('Signature of the address.'),
    }),
    answer: exchange => stream(exchange, owners),
  }),
]
