import { bufferOf } from '../cpu/thread-work.ts'
import { Failure } from '../failure.ts'
import type { MediaSender } from '../media/media.ts'
import type { Lease } from '../models/fleet.ts'
import type { Model } from '../models/model.ts'
import { catalogOfWork, modelOfWork } from '../models/model-names.ts'
import { costOf, type Price, type PricedImage } from '../models/price.ts'
import type { Registry } from '../models/registry.ts'
import type { Task } from '../schemas/task.ts'
import {
  type JobRecord,
  type LogLine,
  largeResultBytes,
  type NewFile,
  type NewLibraryItem,
  type Usage,
} from '../store/store.ts'
import { meteredUsage } from '../usage.ts'
import type { CallerAnswer } from './engine-request.ts'
import { taskRecord } from './registry.ts'
import type { RunnerName, TaskRecord } from './task.ts'

/** The result of one attempt of a job. The files are stored already; their rows are written when the job ends. */
export interface RunResult {
  /** JSON text, or the same in UTF-8. */
  result: string | Uint8Array
  usage: Usage
  /** Millionths of the currency unit. */
  cost: number
  files: NewFile[]
  library: NewLibraryItem[]
  /** The actual inputs as JSON text, if they were not known before the run. */
  inputs?: string
  /** Cache key with which the same work finds this result. */
  cacheKey?: string
}

/**
 * The result of an attempt as its runner returns it: its usage without time on the slot, and what it costs by which
 * price.
 */
export interface TaskResult extends Omit<RunResult, 'cost'> {
  price: Price
  image?: PricedImage
}

/** Runs one attempt of the tasks of a family; otherwise like `RunJob`. */
export interface RunTask {
  (...run: Parameters<RunJob>): Promise<TaskResult>
  /** Absent if its runs write no files. */
  undo?(ran: Pick<RunResult, 'files'>, job: JobRecord): Promise<void>
}

/** An unfinished image of a run. Its bytes come from the engine and are not checked. */
export interface Preview {
  /** Position of the image in the request, from 0. */
  image: number
  bytes: Buffer
}

/** Receives progress, previews and log lines of a run. Cheap, never throws, may be called at any rate. */
export interface RunReport {
  /** 0 to 1; lower values than before are ignored. */
  progress(fraction: number): void
  log(level: LogLine['level'], message: string): void
  /** Absent where nobody can read previews. */
  preview?(preview: Preview): void
}

interface RunnableJob extends JobRecord {
  /** Origin of our own file URLs in its inputs; absent without any. */
  origin?: string
}

/**
 * Runs one attempt of a durable job on a leased slot; the caller releases the lease. Rejects with Failure, or with the
 * signal's reason once that has aborted. `undo` removes the files of an attempt whose result was not stored, because the
 * job was cancelled or another attempt has ended it.
 */
export interface RunJob {
  (job: RunnableJob, lease: Lease, signal: AbortSignal, report: RunReport): Promise<RunResult>
  undo(ran: RunResult, job: JobRecord): Promise<void>
  /** Called when the result of the attempt is stored and the job has ended. Cheap, never throws. */
  written?(job: JobRecord, ran: RunResult): void
}

/**
 * Runs one attempt of any job with the runner of its task, and adds its time on the slot and its cost. `used` is called
 * with the usage of each successful attempt. Lines of batches cost `batchPriceFactor` times the price.
 */
export function openTaskRunner(
  runners: Record<RunnerName, RunTask>,
  used: (modelId: string, usage: Usage) => void,
  batchPriceFactor = 1,
): RunJob {
  const runnerOf = (task: Task) => runners[taskRecord(task).runner]
  const run = async (...[job, lease, signal, report]: Parameters<RunJob>): Promise<RunResult> => {
    const { price, image, ...ran } = await runnerOf(job.task)(job, lease, signal, report)
    const usage = meteredUsage({ ...ran.usage, ...lease.used() })
    used(job.modelId, usage)
    const cost = costOf(price, usage, image)
    return { ...ran, usage, cost: job.class === 'batch' ? Math.ceil(cost * batchPriceFactor) : cost }
  }
  return Object.assign(run, {
    undo: async (...[ran, job]: Parameters<RunJob['undo']>) => runnerOf(job.task).undo?.(ran, job),
  })
}

/**
 * Returns what a runner needs of a job: the record of its task, its model, the catalog for its request, and the sender of its media. Throws Failure
 * `model_not_found` if the model is no longer offered.
 */
export function workOfJob<Name extends RunnerName>(
  runner: Name,
  job: RunnableJob,
  registry: Pick<Registry, 'find' | 'catalog'>,
  signal: AbortSignal,
) {
  const { task, organizationId, id, origin = '' } = job
  const record = taskRecord(task) as Extract<TaskRecord, { runner: Name }>
  if (record.runner !== runner) throw new Failure('unsupported_task', `The runner '${runner}' has no task ${task}.`)
  const model = modelOfWork(registry.find, job)
  if (!model?.enabled)
    throw new Failure('model_not_found', `The model '${job.requestedModel ?? job.modelId}' is no longer offered here.`)
  const sender: MediaSender = { organizationId, origin, jobId: id, signal }
  return { record, model, catalog: catalogOfWork(registry.catalog(), job), sender }
}

/** Returns the result of a run without files. A large one stays bytes, because it is written to a file unchanged. */
export function answeredResult({ body, usage }: CallerAnswer, { price }: Model): TaskResult {
  const result = typeof body === 'string' || body.byteLength > largeResultBytes ? body : bufferOf(body).toString('utf8')
  return { result, usage, price, files: [], library: [] }
}
