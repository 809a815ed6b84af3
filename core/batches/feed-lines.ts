import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Admission, Admitted, Requester } from '../admission/admission.ts'
import { Failure, type FailureCode } from '../failure.ts'
import { newId } from '../ids.ts'
import type { Jobs } from '../jobs/jobs.ts'
import { notBegun } from '../jobs/retry.ts'
import type { AdmittedJob } from '../jobs/submissions.ts'
import { hasPrice } from '../models/price.ts'
import type { BatchRecord, LineError } from '../store/store.ts'
import { estimateOf, taskRecord } from '../tasks/registry.ts'
import { type BatchEndpoint, maxAttempts } from './batch-line.ts'
import type { InputLine } from './batch-work.ts'
import type { BatchesOptions } from './batches.ts'

/** What a page of lines becomes. */
export interface PageJobs {
  jobs: AdmittedJob[]
  refused: { line: number; error: LineError }[]
  /** The lines that become these, in the order of the file; none if the first of them must wait. */
  lines: InputLine[]
  /** The failure that the next line waits for, or that all further lines have. */
  stopped: { by: Failure; forAll: boolean } | undefined
}

/** Codes of failures that may pass: the line waits. */
const passing: ReadonlySet<FailureCode> = new Set([...notBegun, 'disk_full'])

/** What the jobs of all lines have. */
const lineDefaults = {
  class: 'batch',
  priority: 0,
  maxAttempts,
  startBy: null,
  timeoutMs: null,
  idempotency: null,
} as const

export const lineError = ({ code, message, param }: Failure): LineError => ({
  code,
  message,
  ...(param === undefined ? {} : { param }),
})

/** Admits lines of batches and turns them into jobs. */
export function openLineAdmission(
  options: Pick<BatchesOptions, 'admission' | 'registry' | 'cpu' | 'config'> & {
    retentionMs: (batch: BatchRecord) => number | null
  },
) {
  const { admission, registry, cpu, config, retentionMs } = options
  const { limits } = config

  /** Admits one line. Rejects with the Failure of its request. */
  async function admitLine(
    endpoint: BatchEndpoint,
    line: InputLine,
    requester: Requester,
  ): Promise<[Admitted, string]> {
    const { task, modelId = line.model! } = endpoint
    // As for a job that waits: a disabled model is expected to be enabled again.
    if (registry.find(modelId)?.enabled === false)
      throw new Failure('no_capacity', `The model '${modelId}' is disabled here.`)
    const inputs = endpoint.inputs ? JSON.stringify(endpoint.inputs(JSON.parse(line.body) as never)) : line.body
    const record = taskRecord(task)
    const admit = (estimate: Parameters<Admission['admit']>[1]['estimate']): Admitted =>
      admission.admit(requester, { kind: 'line', task, modelId, ...(estimate ? { estimate } : {}) })
    if (record.runner !== 'text') {
      const known = record.runner === 'transcription' ? {} : (JSON.parse(inputs) as object)
      return [admit(() => estimateOf(task, known, record.runner === 'transcription' ? 1 : 0)), inputs]
    }
    const admitted = admit(undefined)
    if (!hasPrice(admitted.model.price)) return [admitted, inputs]
    const prepared = await cpu.prepare(record.id, Buffer.from(inputs), registry.catalog(), limits)
    return [admit(() => prepared.estimate!), inputs]
  }

  /**
   * Admits lines in their order, until one must wait. Rejects if the admission of a line fails for an unknown reason;
   * unless `patient`, that is the error of the line.
   */
  return async (
    batch: BatchRecord,
    endpoint: BatchEndpoint,
    page: readonly InputLine[],
    requester: Requester,
    patient: boolean,
  ): Promise<PageJobs> => {
    const fed: PageJobs = { jobs: [], refused: [], lines: [], stopped: undefined }
    const now = Date.now()
    let began = performance.now()
    for (const line of page) {
      if (performance.now() - began > 1) {
        await nextTurn()
        began = performance.now()
      }
      try {
        const [admitted, inputs] = await admitLine(endpoint, line, requester)
        const spent = admission.spentOut(admitted)
        if (spent) {
          fed.stopped = { by: spent, forAll: true }
          break
        }
        const metadata = JSON.stringify({ batch_id: batch.id, custom_id: line.customId })
        const ofLine = { batch: { id: batch.id, line: line.line }, retentionMs: retentionMs(batch), metadata }
        const { traceparent } = batch
        const { slug } = endpoint
        fed.jobs.push({
          ...lineDefaults,
          id: newId('job'),
          admitted,
          slug,
          inputs,
          ...ofLine,
          traceparent,
          notBefore: now,
          createdAt: now,
        })
      } catch (thrown) {
        const failure = Failure.from(thrown)
        // One that cannot pass, such as a model that this machine can never load, is the line's own.
        if (passing.has(failure.code) && failure.retryable) {
          fed.stopped = { by: failure, forAll: false }
          break
        }
        if (failure.code === 'internal_error' && patient) throw thrown
        fed.refused.push({ line: line.line, error: lineError(failure) })
      }
      fed.lines.push(line)
    }
    return fed
  }
}

/** Stores fed lines as jobs. False: the batch has changed meanwhile. Throws the Failures of a submission. */
export async function storePageJobs(
  batch: BatchRecord,
  { jobs: wanted, refused, lines }: PageJobs,
  { jobs, store }: { jobs: Pick<Jobs, 'submitWith'>; store: BatchesOptions['store'] },
): Promise<boolean> {
  const last = lines.at(-1)
  if (!last) return true
  const { organizationId, id, fed } = batch
  const next = { nextLine: last.line + 1, nextOffset: last.end }
  const stored = await jobs.submitWith(wanted, added =>
    store.batches.feed({ organizationId, id, fed, jobs: added, refused, ...next, at: Date.now() }),
  )
  return stored !== undefined
}

/** The first half of the lines that become jobs, with the refused lines between them. */
export function firstHalf({ jobs, refused, lines }: PageJobs): PageJobs {
  const kept = jobs.slice(0, Math.ceil(jobs.length / 2))
  const last = kept.at(-1)!.batch!.line
  const isKept = ({ line }: { line: number }) => line <= last
  return { jobs: kept, refused: refused.filter(isKept), lines: lines.filter(isKept), stopped: undefined }
}
