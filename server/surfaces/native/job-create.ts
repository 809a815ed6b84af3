import { z } from 'zod'
import { Failure, invalid } from '../../../core/failure.ts'
import { optional, optionalOneOf, optionalStringUpTo, unixTime } from '../../../core/schemas/fields.ts'
import { regions } from '../../../core/schemas/region.ts'
import { Task } from '../../../core/schemas/task.ts'
import { taskRecord } from '../../../core/tasks/registry.ts'
import { errorGroups } from '../../http/request/errors.ts'
import type { ClientExchange } from '../../http/request/exchange.ts'
import type { Owners } from '../../http/request/owners.ts'
import { askForRegion } from '../../http/request/region.ts'
import { routeOf } from '../../http/request/route.ts'
import { JobCreated } from '../../views/job-record.ts'
import { TaskName } from '../../views/task-schemas.ts'
import {
  aWeek,
  jobWebhookTypes,
  Metadata,
  Priority,
  priorityOf,
  tenYears,
  webhookFields,
  webhookInBody,
} from '../../work/job-terms.ts'
import { type JobTerms, submissionAnswer } from '../../work/submit.ts'
import { submitGeneration } from '../../work/submit-generation.ts'
import { parsedInputs, type SubmitterOwners, submitters } from '../../work/submitters.ts'

const route = routeOf({ tag: 'Jobs' })

const Inputs = z.record(z.string(), z.unknown())

const Create = z
  .strictObject({
    task: TaskName.describe('Task type. Send `task` and `model_id`, or `slug` alone.'),
    model_id: optionalStringUpTo(128, 'Id of the model, as in `GET /std/v1/models`.'),
    model: optionalStringUpTo(128, 'The same as `model_id`.'),
    slug: optionalStringUpTo(512, 'Name of a model and one of its tasks, as in `GET /api/model-status`.'),
    inputs: optional(Inputs, 'Request of the task without `model`: the same fields as at its own endpoint. Required.'),
    input: optional(Inputs, 'The same as `inputs`.'),
    payload: optional(Inputs, 'The same as `inputs`.'),
    priority: Priority.describe(
      'Higher runs earlier; `low` is -10, `normal` 0, `high` 10. A job that has waited long enough is not overtaken any more.',
    ),
    max_attempts: z.int().min(1).max(10).default(3).describe('Most attempts, the first included.'),
    not_before: optional(unixTime, 'Earliest start in Unix seconds. Default: now.'),
    start_timeout_seconds: optional(
      z.number().min(0.1).max(aWeek),
      'Seconds within which the job must begin, counted from its earliest start; else it fails. Default: no limit.',
    ),
    timeout_seconds: optional(z.number().min(0.1).max(aWeek), 'Most seconds of one attempt. Default: no limit.'),
    expires_after_seconds: optional(
      z.number().min(1).max(tenYears),
      'Seconds for which the job and its files are kept after its end. Default: `job_retention` in `infer.yaml`.',
    ),
    metadata: optional(Metadata, 'Your own key-value pairs, by which jobs can be listed.'),
    region: optionalOneOf(
      'Region in which the job runs: its model must be there. `Global` asks for none. Default: `Global`.',
      regions,
    ),
    ...webhookFields('job.completed, job.failed and job.cancelled'),
  })
  .superRefine((body, ctx) => {
    const needs = (name: string) =>
      ctx.addIssue({ code: 'invalid_type', expected: 'nonoptional', path: [name], input: undefined })
    if (body.slug === undefined && body.task === undefined) needs('task')
    if (body.slug === undefined && (body.model_id ?? body.model) === undefined) needs('model_id')
    if ((body.inputs ?? body.input ?? body.payload) === undefined) needs('inputs')
  })
  .meta({ id: 'JobCreate', description: 'A job to run in the background.' })
type Create = z.output<typeof Create>

const termsOf = (body: Create, exchange: ClientExchange, owners: Owners<'webhooks'>): JobTerms => ({
  priority: priorityOf(body.priority),
  maxAttempts: body.max_attempts,
  notBefore: (body.not_before ?? 0) * 1000,
  startTimeoutMs: milliseconds(body.start_timeout_seconds),
  timeoutMs: milliseconds(body.timeout_seconds),
  retentionMs: milliseconds(body.expires_after_seconds),
  metadata: body.metadata,
  webhook: webhookInBody(body, exchange, jobWebhookTypes, owners),
})
const milliseconds = (seconds: number | undefined) => (seconds === undefined ? undefined : Math.round(seconds * 1000))

/**
 * Returns the model and the inputs, and the names of the fields in which they were sent. Large inputs are JSON text.
 */
function givenOf(body: Create, exchange: ClientExchange) {
  const modelField = body.model_id === undefined && body.model !== undefined ? 'model' : 'model_id'
  const inputsField = (['inputs', 'input', 'payload'] as const).find(name => body[name] !== undefined) ?? 'inputs'
  return {
    modelField,
    inputsField,
    modelId: body[modelField],
    inputs: exchange.texts.get(inputsField) ?? body[inputsField]!,
  } as const
}

/** Returns the same Failure with the names of the fields that the caller sent. */
function renamed(thrown: unknown, named: (field: string) => string) {
  const failure = Failure.from(thrown)
  const { message, param, details } = failure
  if (param === undefined) return thrown
  const renamedIn = (text: string, field: string) => text.replaceAll(`'${field}'`, `'${named(field)}'`)
  return failure.with({
    message: renamedIn(message, param),
    param: named(param),
    details: details?.map(one => ({ ...one, path: named(one.path), message: renamedIn(one.message, one.path) })),
  })
}

/**
 * Returns the slug, or the model and the task. Throws Failure `invalid_value` where the slug contradicts the others.
 */
function targetOf(
  { slug, task }: Create,
  modelId: string | undefined,
  { registry }: Owners<'registry'>,
): { slug: string } | { modelId: string; task: Task } {
  // Without a slug the schema requires the others.
  if (slug === undefined) return { modelId: modelId!, task: task! }
  const named = registry.bySlug(slug)
  if (named && ((task ?? named.task) !== named.task || (modelId ?? named.name) !== named.name))
    throw invalid(
      'slug',
      `The slug '${slug}' is ${named.task} of the model '${named.model.id}'. Send the slug alone, or without it a task and a model.`,
    )
  return { slug }
}

async function create(body: Create, exchange: ClientExchange, owners: SubmitterOwners) {
  askForRegion(exchange, body.region)
  const { modelField, inputsField, modelId: given, inputs } = givenOf(body, exchange)
  const target = targetOf(body, given, owners)
  const terms = termsOf(body, exchange, owners)
  const own: Record<string, string> = { model: modelField, slug: 'slug', 'Idempotency-Key': 'Idempotency-Key' }
  const named = (field: string) => own[field] ?? `${inputsField}.${field}`
  try {
    if ('slug' in target) {
      const sent = parsedInputs(exchange, `'${target.slug}'`, inputs, owners)
      return (await submitGeneration(exchange, { target, body: sent, terms, strict: true }, owners)).job
    }
    const { task, modelId } = target
    return await submitters[taskRecord(task).runner].create(exchange, { task, modelId, inputs, terms, body }, owners)
  } catch (thrown) {
    throw renamed('slug' in target ? ofSlug(thrown) : thrown, named)
  }
}

/** In `/slug/…` the slug is part of the path; here it is a field. */
function ofSlug(thrown: unknown) {
  const { code, message, cause } = Failure.from(thrown)
  return code === 'model_not_found' || code === 'model_not_allowed'
    ? new Failure(code, message, { param: 'slug', cause })
    : thrown
}

/** The route that creates a job. */
export const createRoute = (owners: SubmitterOwners) =>
  route('POST /api/jobs', 'user:write', {
    bucket: 'jobs',
    summary: 'Create job',
    description:
      'Stores a job that runs in the background as soon as there is capacity. Once the answer with the id has arrived, the job survives crashes and restarts. Read it with `GET /api/jobs/{id}?wait=60` or follow its events. Images, videos and audio in the inputs are http(s) URLs, `data:` URLs or ids of files.',
    errorCodes: [...errorGroups.submit, ...errorGroups.media],
    largeBody: true,
    bodyTexts: { members: ['inputs', 'input', 'payload'], without: ['model', 'stream'] },
    body: Create,
    example: {
      task: 'std/embeddings',
      model_id: 'infer/tiny-embed',
      inputs: { input: 'A cat sat on the mat.' },
      metadata: { ref: '42' },
    },
    response: JobCreated,
    status: 202,
    handle: async ({ body }, exchange) => submissionAnswer(await create(body, exchange, owners)),
  })
