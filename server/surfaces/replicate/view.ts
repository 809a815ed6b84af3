import { createHash } from 'node:crypto'
import { Failure, invalid } from '../../../core/failure.ts'
import { queueIdOf } from '../../../core/ids.ts'
import type { Model } from '../../../core/models/model.ts'
import { didYouMean, nearestModels } from '../../../core/nearest.ts'
import { isSlugTask } from '../../../core/schemas/task.ts'
import type { JobRecord } from '../../../core/store/store.ts'
import { taskRecord } from '../../../core/tasks/registry.ts'
import { errorBody } from '../../http/request/errors.ts'
import type { ClientExchange } from '../../http/request/exchange.ts'
import { readResult } from '../../http/request/json-text.ts'
import type { Owners } from '../../http/request/owners.ts'
import { routeOf } from '../../http/request/route.ts'
import { outputOf } from '../../views/generation-request.ts'
import { inputsText, resultText, type UrlReader } from '../../views/job-record.ts'
import { visibleModels } from '../../work/allowed-models.ts'

/** Returns the error of a request in Replicate's form, with the common form beside it. */
export const replicateErrors = (failure: Failure, exchange: { id: string }) => ({
  status: failure.status,
  body: { title: failure.code, detail: failure.message, status: failure.status, ...errorBody(failure, exchange.id) },
})

/** Makes a route of the Replicate-compatible API. */
export const replicateRoute = routeOf({ tag: 'Replicate', errors: replicateErrors })

/** The owner in the names of models whose id has none: Replicate's clients require `owner/name`. */
const localOwner = 'local'

/** The only version of a model: 64 hexadecimal digits, as Replicate's versions. */
export const replicateVersion = ({ id }: Pick<Model, 'id'>): string =>
  createHash('sha256').update(`infer model ${id}`).digest('hex')

/** Returns `owner/name` of a model. Further parts of an id stay in the name. */
export const replicateName = ({ id }: Pick<Model, 'id'>): string => (id.includes('/') ? id : `${localOwner}/${id}`)

/** Finds a model by `owner/name`, by its id, or by a version of it. Throws Failure `model_not_found`. */
export function findReplicateModel(name: string, exchange: ClientExchange, owners: Owners<'registry'>): Model {
  const models = visibleModels(exchange, owners)
  // A version may come with the name of its model before it.
  const [plain, version] = name.split(':') as [string, string | undefined]
  const found = models.find(
    model => model.id === name || replicateName(model) === plain || replicateVersion(model) === (version ?? name),
  )
  if (found) return found
  const meant = nearestModels(plain, models.map(replicateName))
  throw invalid(
    'version',
    `There is no model or version '${name.slice(0, 128)}' here.${didYouMean(meant)} GET /replicate/v1/models lists the existing ones.`,
    'model_not_found',
  )
}

const statuses = {
  pending: 'starting',
  processing: 'processing',
  completed: 'succeeded',
  failed: 'failed',
  cancelled: 'canceled',
} as const satisfies Record<JobRecord['status'], string>

/** Marks jobs that are predictions, whose webhooks have Replicate's form. */
export const ofReplicate = { api: 'replicate' } as const

export const isPrediction = ({ metadata }: Pick<JobRecord, 'metadata'>): boolean =>
  metadata !== null && (JSON.parse(metadata) as { api?: unknown } | null)?.api === ofReplicate.api

const iso = (ms: number | null) => (ms === null ? null : new Date(ms).toISOString())
const spent = (from: number | null, to: number | null) =>
  from === null || to === null ? null : Math.max(0, to - from) / 1000

type ViewOwners = Owners<'files' | 'jobs'>

/** Returns the output of a prediction that has succeeded, with addresses of its files. Throws Failure `output_expired`. */
export async function outputOfPrediction(job: JobRecord, from: UrlReader, owners: ViewOwners) {
  const result = isSlugTask(job.task)
    ? await outputOf(job, from, owners)
    : (JSON.parse(resultText(job.task, await readResult(job.result!), from, owners)) as object)
  const { prediction } = taskRecord(job.task)
  return prediction ? prediction.output(result) : result
}

/** Returns why a prediction has failed; null if it has not. */
export const errorOfPrediction = ({ status, error }: Pick<JobRecord, 'status' | 'error'>): string | null =>
  status === 'failed' ? (error?.message ?? 'The prediction failed.') : null

/** Where the events of a prediction are streamed: signed, because Replicate's clients send no token there. */
function streamUrl(job: JobRecord, { origin }: UrlReader, { files }: Owners<'files'>) {
  const id = queueIdOf(job.id)
  const signed = new URL(files.link({ id, name: 'stream' }, origin))
  return `${origin}/replicate/v1/stream/${job.organizationId}/${id}${signed.search}`
}

/**
 * Returns a prediction as JSON text. `waits`: an answer to a request that waited; an unfinished prediction is `starting`
 * then, because Replicate's client takes every other status for an end.
 */
export async function predictionText(
  job: JobRecord,
  from: UrlReader,
  owners: ViewOwners,
  { waits = false, brief = false }: { waits?: boolean; brief?: boolean } = {},
): Promise<string> {
  const id = queueIdOf(job.id)
  const url = `${from.origin}/replicate/v1/predictions/${id}`
  let output: unknown = null
  let removed = false
  if (job.status === 'completed' && !brief)
    try {
      output = await outputOfPrediction(job, from, owners)
    } catch (thrown) {
      if (!(thrown instanceof Failure) || thrown.code !== 'output_expired') throw thrown
      removed = true
    }
  const logs = brief ? [] : await owners.jobs.logs(job)
  const status = waits && job.status === 'processing' ? 'starting' : statuses[job.status]
  const head = {
    id,
    model: job.modelId.includes('/') ? job.modelId : `${localOwner}/${job.modelId}`,
    version: replicateVersion({ id: job.modelId }),
    output,
    error: errorOfPrediction(job),
    logs: logs.map(({ message }) => `${message}\n`).join(''),
    status,
    source: 'api',
    data_removed: removed,
    created_at: iso(job.createdAt),
    started_at: iso(job.startedAt),
    completed_at: iso(job.finishedAt),
    metrics: {
      predict_time: spent(job.startedAt, job.finishedAt) ?? undefined,
      total_time: spent(job.createdAt, job.finishedAt) ?? undefined,
    },
    urls: { get: url, cancel: `${url}/cancel`, stream: streamUrl(job, from, owners) },
    ...(job.webhook ? { webhook: job.webhook.url } : {}),
  }
  return `${JSON.stringify(head).slice(0, -1)},"input":${brief ? '{}' : inputsText(job)}}`
}
