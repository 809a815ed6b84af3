import { z } from 'zod'
import type { Caller } from '../../core/accounts/accounts.ts'
import { Failure } from '../../core/failure.ts'
import { isId, queueIdOf } from '../../core/ids.ts'
import { type WaitingFor as CoreWaitingFor, type JobProgress, waitingReasons } from '../../core/jobs/job-progress.ts'
import { fallbackReasons } from '../../core/schemas/fallback-reason.ts'
import {
  anything,
  boolean,
  integer,
  namedObject,
  nullable,
  nullableInteger,
  nullableNumber,
  nullableString,
  number,
  object,
  oneOf,
  optionalString,
  string,
} from '../../core/schemas/fields.ts'
import { Task } from '../../core/schemas/task.ts'
import { deferredUntil, type JobRecord, jobStatuses } from '../../core/store/store.ts'
import { hasFiles, shownResult, taskRecord } from '../../core/tasks/registry.ts'
import type { Usage } from '../../core/usage.ts'
import { Embedded, JsonText, readResult } from '../http/request/json-text.ts'
import type { Owners } from '../http/request/owners.ts'
import { seconds } from './view-of.ts'

/** What a job or an execution has used. */
export const UsageObject = namedObject('Usage', 'What was metered. What a task does not use is 0.', {
  input_tokens: integer('Tokens of the inputs.'),
  cached_tokens: integer('The part of the input tokens that the engine has reused from its cache.'),
  output_tokens: integer('Tokens of the results.'),
  reasoning_tokens: integer('The part of the output tokens that is reasoning.'),
  images: integer('Images created.'),
  video_seconds: number('Seconds of video created.'),
  audio_seconds: number('Seconds of audio created or transcribed.'),
  characters: integer('Characters turned into audio.'),
  documents: integer('Documents ranked and pairs scored.'),
  gpu_ms: integer(
    'Milliseconds on a slot, times the devices of the engine, divided by its slots; failed attempts too.',
  ),
  energy_joules: nullableNumber(
    'Energy of the devices in that time, in joules; null if a device does not report its power.',
  ),
})

/** Returns a usage as API clients read it. */
export const usageObject = (usage: Usage): z.input<typeof UsageObject> => ({
  input_tokens: usage.inputTokens,
  cached_tokens: usage.cachedTokens ?? 0,
  output_tokens: usage.outputTokens,
  reasoning_tokens: usage.reasoningTokens ?? 0,
  images: usage.images ?? 0,
  video_seconds: (usage.videoMs ?? 0) / 1000,
  audio_seconds: (usage.audioMs ?? 0) / 1000,
  characters: usage.characters ?? 0,
  documents: usage.documents ?? 0,
  gpu_ms: usage.gpuMs ?? 0,
  energy_joules: usage.energyMj == null ? null : usage.energyMj / 1000,
})

/** The reader of an object: the origin of the URLs in the object. */
export interface UrlReader {
  readonly origin: string
}
/** The same, with the caller whose organization is searched. */
export interface Viewer extends UrlReader {
  readonly caller: Caller
}

/** Why work has not begun. */
export const WaitingFor = namedObject('WaitingFor', 'Why a job or request has not begun.', {
  reason: oneOf('What it waits for.', waitingReasons),
  detail: string('The same as a sentence for people.'),
  eta_seconds: nullableInteger('Expected seconds until it begins; null if unknown.'),
})

/** The reason in the shape of the API. */
export const waitingObject = ({ reason, detail, etaMs }: CoreWaitingFor): z.input<typeof WaitingFor> => ({
  reason,
  detail,
  eta_seconds: wholeSeconds(etaMs),
})

const errorFacts = {
  code: string('Error code, as in answers with an error.'),
  message: string('What happened, as a sentence.'),
  type: string('Class of the error, such as `server_error`.'),
}

/** Why something failed, where only that is shown. */
export const ErrorFacts = namedObject('ErrorSummary', 'Why something failed.', errorFacts)

/** Why a job failed. */
export const JobErrorObject = namedObject('JobError', 'Why a job failed.', {
  ...errorFacts,
  retryable: boolean('Whether another attempt may succeed.'),
  attempt: integer('Number of the attempt that failed, from 1.'),
})

/** The answer to a submission of a job. */
export const JobCreated = namedObject('JobCreated', 'A job that was created.', {
  id: string('Id of the job: `job_…`.'),
  queue_id: string('Id of the same job under `/slug/requests`: `q_…`.'),
  status: oneOf('State of the job.', jobStatuses),
  status_url: optionalString('Where to read the job. Only in answers to `Prefer: respond-async`.'),
})

/** The answer to `Prefer: respond-async`, in the reference. */
export const respondAsync = {
  202: { description: 'The job that was created, with the header `Prefer: respond-async`.', response: JobCreated },
} as const

const wholeSeconds = (ms: number | null) => (ms === null ? null : Math.ceil(ms / 1000))

const JobFacts = z.object({
  id: string('Id of the job: `job_…`.'),
  object: z.literal('job'),
  queue_id: nullableString('Id of the same job under `/slug/requests`: `q_…`; null for a synchronous request.'),
  organization_id: string('Id of the organization: `org_…`.'),
  kind: oneOf('`async`: a background job. `sync`: a synchronous request.', ['async', 'sync']),
  task: Task,
  model_id: string('Id of the model that does it.'),
  requested_model: nullableString(
    'The alias, profile, adapter or other model that the request named; null if it is `model_id`.',
  ),
  fallback_reason: nullable(
    z.enum(fallbackReasons),
    'Why a fallback does it in place of the requested model; null if it does not.',
  ),
  slug: nullableString('The slug that was requested; null if none was.'),
  status: oneOf('State of the job.', jobStatuses),
  priority: integer('Priority, -100 to 100; higher runs earlier.'),
  queue_position: nullableInteger('How many jobs are before it; null unless it waits.'),
  progress: nullableNumber('Progress from 0 to 1; null if unknown.'),
  previews: integer(
    'Unfinished images that its current run has made, for `GET /api/jobs/{id}/preview`; 0 unless it runs.',
  ),
  eta_seconds: nullableInteger('Expected seconds until the end, estimated from similar jobs; null if unknown.'),
  waiting_for: nullable(WaitingFor, 'Why it has not begun; null unless it waits.'),
  error: nullable(JobErrorObject, 'Why the job, or its last attempt, failed; null if it did not.'),
  attempts: integer('Attempts so far.'),
  max_attempts: integer('Most attempts, the first included.'),
  worker_id: nullableString('Id of the engine that ran the last attempt; null before.'),
  created_at: integer('Unix seconds.'),
  updated_at: integer('Unix seconds of the last change.'),
  queued_at: nullableInteger('Unix seconds since when it may begin; null while it waits for `not_before`.'),
  started_at: nullableInteger('Unix seconds; null before.'),
  finished_at: nullableInteger('Unix seconds; null before.'),
  expires_at: nullableInteger(
    'Unix seconds after which the job and its files are deleted; null if they are kept or the job has not ended.',
  ),
  metrics: object('How long it took.', {
    queue_ms: nullableInteger('Milliseconds from creation to start; null before.'),
    reference_queue_ms: nullableInteger(
      'Milliseconds that it would have waited if the queue ignored which models are loaded; null if it waited for no load.',
    ),
    time_to_first_token_ms: nullableInteger(
      'Milliseconds from the request to the first piece of text; null unless it was a streamed request, and before.',
    ),
    load_ms: nullableInteger('Always null: loading of the model is part of `queue_ms`.'),
    run_ms: nullableInteger('Milliseconds from start to end; null before.'),
  }),
  usage: nullable(UsageObject, 'What was metered; null before the end.'),
  cost: nullableNumber('Cost in the currency unit of the configured prices; null before the end.'),
  token_id: string('Id of the token that created it.'),
  outputs_reused: z
    .literal(false)
    .describe('Always false: every job is computed. A workflow node that reuses a result has no job of its own.'),
  webhook_url: nullableString('Where its events are sent, as the request said; null if it did not.'),
  traceparent: nullableString(
    'The trace of the request, as its `traceparent` header said (W3C Trace Context); null without a valid one.',
  ),
  metadata: anything('Your own key-value pairs; null if none were sent.'),
})

/** A job without its inputs and result, for lists and events. */
export const JobSummary = JobFacts.meta({ id: 'JobSummary', description: 'A job without its inputs and result.' })

export const JobObject = JobFacts.extend({
  inputs: anything(
    'The inputs. Of a workflow node: with all references replaced; null if a value to which they refer is no longer known.',
  ),
  result: anything('The answer of the task, as at its own endpoint; null before the end.'),
}).meta({ id: 'Job', description: 'A job: a request that runs in the background, or the record of a synchronous one.' })

const nothingKnown: JobProgress = { progress: null, queuePosition: null, etaMs: null, waitingFor: null }

export const hasEnded = ({ status }: Pick<JobRecord, 'status'>): boolean =>
  status === 'completed' || status === 'failed' || status === 'cancelled'

/** The progress of a job, or of a call that waits or runs. */
export const progressOf = (job: JobRecord, { jobs }: Owners<'jobs'>): JobProgress =>
  hasEnded(job) ? { ...nothingKnown, progress: job.status === 'completed' ? 1 : null } : jobs.progressOf(job)

function facts(job: JobRecord, owners: Owners<'jobs'>): Omit<z.input<typeof JobFacts>, 'metadata'> {
  const { progress, queuePosition, etaMs, waitingFor } = progressOf(job, owners)
  const ready = job.notBefore === deferredUntil ? job.createdAt : Math.max(job.createdAt, job.notBefore)
  return {
    id: job.id,
    object: 'job',
    queue_id: job.kind === 'async' ? queueIdOf(job.id) : null,
    organization_id: job.organizationId,
    kind: job.kind,
    task: job.task,
    model_id: job.modelId,
    requested_model: job.requestedModel,
    traceparent: job.traceparent ?? null,
    fallback_reason: job.fallbackReason,
    slug: job.slug,
    status: job.status,
    priority: job.priority,
    queue_position: queuePosition,
    progress,
    previews: owners.jobs.previewsOf(job.id).length,
    eta_seconds: wholeSeconds(etaMs),
    waiting_for: waitingFor && waitingObject(waitingFor),
    error: job.error,
    attempts: job.attempt,
    max_attempts: job.maxAttempts,
    worker_id: job.engineId,
    created_at: seconds(job.createdAt),
    updated_at: seconds(job.updatedAt),
    queued_at: job.status === 'pending' && job.notBefore > Date.now() ? null : seconds(ready),
    started_at: seconds(job.startedAt),
    finished_at: seconds(job.finishedAt),
    expires_at: seconds(job.expiresAt),
    metrics: {
      queue_ms: job.startedAt === null ? null : Math.max(0, job.startedAt - job.createdAt),
      reference_queue_ms: job.referenceQueueMs,
      time_to_first_token_ms: job.timeToFirstTokenMs ?? null,
      load_ms: null,
      run_ms: job.startedAt === null || job.finishedAt === null ? null : Math.max(0, job.finishedAt - job.startedAt),
    },
    usage: job.usage && usageObject(job.usage),
    cost: job.cost === null ? null : job.cost / 1e6,
    token_id: job.tokenId,
    outputs_reused: false,
    webhook_url: job.webhook?.url ?? null,
  }
}

/** Returns a result as JSON text: results of text tasks as stored, others with the addresses of their files. */
export function resultText(task: Task, result: string, { origin }: UrlReader, { files }: Owners<'files'>) {
  if (!hasFiles(task)) return result
  return JSON.stringify(shownResult(task, JSON.parse(result), file => files.link(file, origin)))
}

/** The summary of a job as JSON text. */
export const summaryText = (job: JobRecord, owners: Owners<'jobs'>): string =>
  `${JSON.stringify(facts(job, owners)).slice(0, -1)},"metadata":${job.metadata ?? 'null'}}`

/**
 * Returns the inputs of a job as JSON text that can be submitted again. Only those with files are stored in another
 * form.
 */
export const inputsText = ({ task, inputs }: JobRecord): string =>
  inputs !== 'null' && taskRecord(task).takesFiles
    ? JSON.stringify(taskRecord(task).requestAgain(JSON.parse(inputs) as never))
    : inputs

/**
 * Returns the whole job. Its inputs are stored as JSON text, may be large, and are not parsed; nor is a large result. The
 * inputs of a node are stored when it has completed, and follow from its definition before.
 */
export async function jobAnswer(job: JobRecord, viewer: UrlReader, owners: Owners<'executions' | 'files' | 'jobs'>) {
  const embedded: Embedded[] = []
  const head = summaryText(job, owners).slice(0, -1)
  const own = job.kind === 'async' ? inputsText : () => 'null'
  const inputs = job.parent ? JSON.stringify(await owners.executions.inputsOf(job)) : own(job)
  const result = await shown(job, viewer, owners, embedded)
  return new JsonText(`${head},"inputs":${inputs},"result":${result}}`, undefined, embedded)
}

async function shown(
  { task, result }: JobRecord,
  viewer: UrlReader,
  owners: Owners<'files'>,
  embedded: Embedded[],
): Promise<string> {
  if (result === null) return 'null'
  if (typeof result === 'string' || hasFiles(task)) return resultText(task, await readResult(result), viewer, owners)
  const large = new Embedded(result)
  embedded.push(large)
  return JSON.stringify(large)
}

const missingJob = (id: string) => new Failure('not_found', `Job ${id.slice(0, 64)} was not found.`)

/** Whether a cursor or a path has the form of a job id. */
export const isJobId = (id: string): boolean => isId(id, 'job_')

/**
 * Finds a job or a synchronous call of the caller's organization. Throws Failure `not_found`, and `output_expired` for
 * a job that is no longer kept.
 */
export async function findJob(id: string, viewer: Viewer, { jobs }: Owners<'jobs'>): Promise<JobRecord> {
  const { organizationId } = viewer.caller
  // A call is in memory until its record is stored, so memory is searched first: the other order could miss it in both.
  const look = async () =>
    jobs.calls.find(organizationId, id) ?? (isJobId(id) ? await jobs.find(organizationId, id) : undefined)
  let job = await look()
  // A call that runs in another process may have ended just now.
  const mayBeOlder = job === undefined || (job.kind === 'sync' && job.finishedAt === null)
  const known = mayBeOlder && isJobId(id) ? jobs.calls.known() : undefined
  if (known) {
    await known
    job = await look()
  }
  // An expired job is hidden at once, and removed in the background.
  const hasExpired = job?.expiresAt != null && job.expiresAt <= Date.now()
  if (job && !hasExpired) return job
  if (hasExpired || (isJobId(id) && (await jobs.wasRemoved(organizationId, id))))
    throw new Failure('output_expired', `Job ${id} is no longer kept: it was deleted, or its retention is over.`)
  throw missingJob(id)
}
