import { z } from 'zod'
import { Failure } from '../../core/failure.ts'
import { isId, queueIdOf } from '../../core/ids.ts'
import { type JobProgress, waitingReasons } from '../../core/jobs/job-progress.ts'
import { Task } from '../../core/schemas/task.ts'
import { type JobRecord, jobStatuses } from '../../core/store/store.ts'
import { hasFiles, shownResult, taskRecord } from '../../core/tasks/registry.ts'
import type { Call } from '../call.ts'
import { Embedded, readResult } from '../embedded.ts'
import type { Owners } from '../owners.ts'
import { JsonText } from '../route.ts'

export const seconds = (ms: number | null) => (ms === null ? null : Math.floor(ms / 1000))
const wholeSeconds = (ms: number | null) => (ms === null ? null : Math.ceil(ms / 1000))

const JobFacts = z.object({
  id: z.string(),
  object: z.literal('job'),
  queue_id: z.string().nullable().describe('The same job under `/slug/requests`; null for a synchronous call.'),
  organization_id: z.string(),
  kind: z.enum(['async', 'sync']),
  task: Task,
  model_id: z.string(),
  slug: z.string().nullable().describe('The slug under which it was asked for.'),
  status: z.enum(jobStatuses),
  priority: z.int(),
  queue_position: z.int().nullable().describe('How many jobs are before it; null once it has begun.'),
  progress: z.number().nullable().describe('0 to 1; null where nothing is known.'),
  eta_seconds: z.int().nullable().describe('Until its end, as jobs like it have taken; null where nothing is known.'),
  waiting_for: z
    .object({ reason: z.enum(waitingReasons), detail: z.string(), eta_seconds: z.int().nullable() })
    .nullable()
    .describe('Why it has not begun.'),
  error: z
    .object({ code: z.string(), message: z.string(), type: z.string(), retryable: z.boolean(), attempt: z.int() })
    .nullable(),
  attempts: z.int(),
  max_attempts: z.int(),
  worker_id: z.string().nullable(),
  created_at: z.int(),
  updated_at: z.int(),
  queued_at: z.int().nullable().describe('Since when it may begin; null while it waits for its time.'),
  started_at: z.int().nullable(),
  finished_at: z.int().nullable(),
  expires_at: z.int().nullable().describe('When it and its files are removed; null where they are kept.'),
  metrics: z.object({
    queue_ms: z.int().nullable(),
    load_ms: z.int().nullable().describe('Always null: how long a model loaded is not told apart from the queue yet.'),
    run_ms: z.int().nullable(),
  }),
  usage: z.object({ input_tokens: z.int(), output_tokens: z.int() }).nullable(),
  cost: z.number().nullable(),
  token_id: z.string(),
  outputs_reused: z
    .literal(false)
    .describe('Every job is computed. A node of a workflow that takes over a result has no job of its own.'),
  metadata: z.unknown(),
})

/** A job without what went in and what came out: as it stands in lists and events. */
export const JobSummary = JobFacts.meta({ id: 'JobSummary' })

export const JobObject = JobFacts.extend({
  inputs: z
    .unknown()
    .describe('Of a node of an execution what they came to, once it has completed; null where that is large.'),
  result: z.unknown(),
}).meta({ id: 'Job' })

const nothingKnown: JobProgress = { progress: null, queuePosition: null, etaMs: null, waitingFor: null }

export const hasEnded = ({ status }: Pick<JobRecord, 'status'>): boolean =>
  status === 'completed' || status === 'failed' || status === 'cancelled'

/** The progress of a job, or of a call that waits or runs. */
export const progressOf = (job: JobRecord, { jobs }: Pick<Owners, 'jobs'>): JobProgress =>
  hasEnded(job) ? { ...nothingKnown, progress: job.status === 'completed' ? 1 : null } : jobs.progressOf(job)

function facts(job: JobRecord, owners: Pick<Owners, 'jobs'>): Omit<z.input<typeof JobFacts>, 'metadata'> {
  const { progress, queuePosition, etaMs, waitingFor } = progressOf(job, owners)
  const ready = Math.max(job.createdAt, job.notBefore)
  return {
    id: job.id,
    object: 'job',
    queue_id: job.kind === 'async' ? queueIdOf(job.id) : null,
    organization_id: job.organizationId,
    kind: job.kind,
    task: job.task,
    model_id: job.modelId,
    slug: job.slug,
    status: job.status,
    priority: job.priority,
    queue_position: queuePosition,
    progress,
    eta_seconds: wholeSeconds(etaMs),
    waiting_for: waitingFor && {
      reason: waitingFor.reason,
      detail: waitingFor.detail,
      eta_seconds: wholeSeconds(waitingFor.etaMs),
    },
    error: job.error,
    attempts: job.attempt,
    max_attempts: job.maxAttempts,
    worker_id: job.engineId,
    created_at: seconds(job.createdAt)!,
    updated_at: seconds(job.updatedAt)!,
    queued_at: job.status === 'pending' && ready > Date.now() ? null : seconds(ready),
    started_at: seconds(job.startedAt),
    finished_at: seconds(job.finishedAt),
    expires_at: seconds(job.expiresAt),
    metrics: {
      queue_ms: job.startedAt === null ? null : Math.max(0, job.startedAt - job.createdAt),
      load_ms: null,
      run_ms: job.startedAt === null || job.finishedAt === null ? null : Math.max(0, job.finishedAt - job.startedAt),
    },
    usage: job.usage && { input_tokens: job.usage.inputTokens, output_tokens: job.usage.outputTokens },
    cost: job.cost === null ? null : job.cost / 1e6,
    token_id: job.tokenId,
    outputs_reused: false,
  }
}

/** Returns a result as JSON text: that of a text task as it is stored, others with addresses of their files. */
export function resultText(task: Task, result: string, { origin }: Call, { files }: Pick<Owners, 'files'>): string {
  if (!hasFiles(task)) return result
  return JSON.stringify(shownResult(task, JSON.parse(result), file => files.link(file, origin)))
}

/** The summary of a job as JSON text. */
export const summaryText = (job: JobRecord, owners: Pick<Owners, 'jobs'>): string =>
  `${JSON.stringify(facts(job, owners)).slice(0, -1)},"metadata":${job.metadata ?? 'null'}}`

/** Returns the inputs of a job as JSON text that can be submitted again. Only those with files are stored in another form. */
const inputsText = ({ task, inputs }: JobRecord): string =>
  inputs !== 'null' && taskRecord(task).takesFiles
    ? JSON.stringify(taskRecord(task).requestAgain(JSON.parse(inputs) as never))
    : inputs

/** Returns the whole job. Its inputs are stored as JSON text, may be large, and are not parsed; nor is a large result. */
export async function jobAnswer(job: JobRecord, call: Call, owners: Pick<Owners, 'files' | 'jobs'>): Promise<JsonText> {
  const embedded: Embedded[] = []
  const head = summaryText(job, owners).slice(0, -1)
  const inputs = job.kind === 'async' ? inputsText(job) : 'null'
  const result = await shown(job, call, owners, embedded)
  return new JsonText(`${head},"inputs":${inputs},"result":${result}}`, undefined, embedded)
}

async function shown(
  { task, result }: JobRecord,
  call: Call,
  owners: Pick<Owners, 'files'>,
  embedded: Embedded[],
): Promise<string> {
  if (result === null) return 'null'
  if (typeof result === 'string' || hasFiles(task)) return resultText(task, await readResult(result), call, owners)
  const large = new Embedded(result)
  embedded.push(large)
  return JSON.stringify(large)
}

export const missingJob = (id: string) => new Failure('not_found', `Job ${id.slice(0, 64)} was not found.`)

/** Whether a cursor or a path has the form of a job id. */
export const isJobId = (id: string): boolean => id.startsWith('job_') && isId(id)

/**
 * The job of the caller's organization, a synchronous call among them. Throws Failure `not_found`, and `output_expired`
 * for one that is no longer kept.
 */
export async function findJob(id: string, call: Call, { jobs }: Pick<Owners, 'jobs'>): Promise<JobRecord> {
  const { organizationId } = call.caller
  // A call is in memory until its record is stored: looking in the store first could miss it in both places.
  const job = jobs.calls.find(organizationId, id) ?? (isJobId(id) ? await jobs.find(organizationId, id) : undefined)
  // An expired job is hidden at once, and removed in the background.
  const over = job?.expiresAt != null && job.expiresAt <= Date.now()
  if (job && !over) return job
  if (over || (isJobId(id) && (await jobs.gone(organizationId, id))))
    throw new Failure('output_expired', `Job ${id} is no longer kept: it was deleted, or its time was over.`)
  throw missingJob(id)
}
