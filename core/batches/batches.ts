import { setTimeout as delay } from 'node:timers/promises'
import type { Admission, Requester } from '../admission/admission.ts'
import type { Limits } from '../config.ts'
import type { Cpu } from '../cpu/cpu.ts'
import { type DueWork, openDueWork } from '../due-work.ts'
import { Failure } from '../failure.ts'
import type { Files } from '../files/files.ts'
import { newId } from '../ids.ts'
import type { Jobs } from '../jobs/jobs.ts'
import type { Log } from '../log.ts'
import { pick } from '../members.ts'
import type { Registry } from '../models/registry.ts'
import type { Region } from '../schemas/region.ts'
import type { BatchRecord, NewBatch, RowKey, Store } from '../store/store.ts'
import type { Preparation } from '../tasks/preparation.ts'
import type { BatchEndpoints } from './batch-line.ts'
import { openBatchSteps } from './batch-steps.ts'

const sweptAtOnce = 500
const sweepPauseMs = 100

/** Deletes the line rows of batches that have ended, a few at a time, so that other work never waits for it. */
function openLineSweep({ store, log }: { store: Pick<Store['batches'], 'sweep'>; log: Log }) {
  const closed = new AbortController()
  const runs = openDueWork({ work: run })

  async function run(): Promise<void> {
    try {
      while (!closed.signal.aborted && (await store.sweep(sweptAtOnce)) > 0)
        await delay(sweepPauseMs, undefined, { ref: false, signal: closed.signal })
    } catch (thrown) {
      if (closed.signal.aborted || Failure.from(thrown).retryable) return
      log.error('Lines of ended batches could not be deleted', {}, thrown)
    }
  }

  return {
    /** Call it after a batch has ended. */
    wake: () => void runs.check(),
    close(): Promise<void> {
      closed.abort()
      return runs.close()
    },
  }
}

export interface BatchesOptions {
  store: Pick<Store, 'batches' | 'onCommitted'>
  jobs: Pick<Jobs, 'submitWith' | 'cancel' | 'find'>
  admission: Pick<Admission, 'admit' | 'spentOut'>
  registry: Pick<Registry, 'find' | 'catalog'>
  files: Pick<Files, 'api' | 'pathOf'>
  cpu: Pick<Cpu & Preparation, 'calling' | 'prepare'>
  endpoints: BatchEndpoints
  /** What admission needs to know of the token of a batch; undefined if it no longer exists. */
  requesterOf: (organizationId: string, tokenId: string, region: Region | undefined) => Promise<Requester | undefined>
  config: { limits: Pick<Limits, 'json_body' | 'job_retention'> & Limits }
  log: Log
}

/** The longest time until a batch is looked at again without a change, milliseconds. */
const tickMs = 30_000
/** Milliseconds until a step that failed once is repeated; doubled for each further failure. */
const afterErrorMs = 5_000
/** How often the same step may fail before its batch is given up: after two and a half minutes. */
const maxStepFailures = 6

/**
 * Batches: files of requests that run in the background, each as a job of class `batch`. Every batch does its next step
 * when it has changed or waited: check the file, turn lines into jobs, write the output files. All state is in the
 * store, so that batches continue where they were after a crash. `resume` starts them.
 */
export function openBatches(options: BatchesOptions) {
  const { store, log } = options
  /** The batches that have not ended, by id. */
  const unfinished = new Map<string, { organizationId: string; work: DueWork }>()
  const closed = new AbortController()
  const steps = openBatchSteps({
    ...options,
    ofOrganization: id => [...unfinished.values()].filter(({ organizationId }) => organizationId === id).length,
    signal: closed.signal,
  })
  const sweep = openLineSweep({ store: store.batches, log })

  store.onCommitted(({ batches }) => {
    for (const { id } of batches) void unfinished.get(id)?.work.check()
  })

  function begin({ organizationId, id }: RowKey): void {
    if (unfinished.has(id) || closed.signal.aborted) return
    const work = openDueWork({ work: step })
    /** How often the step of this status has failed, and until when it is not repeated, epoch milliseconds. */
    let failing: { status: BatchRecord['status'] | undefined; times: number; until: number } | undefined
    unfinished.set(id, { organizationId, work })
    void work.check()

    async function step(): Promise<void> {
      let batch: BatchRecord | undefined
      try {
        batch = await store.batches.find(organizationId, id)
        if (!batch || batch.finishedAt !== null) return end(id)
        if (failing && failing.status !== batch.status) failing = undefined
        // Lines whose jobs end would repeat it many times a second.
        if (failing && failing.until > Date.now()) return work.at(failing.until)
        const waitMs = await steps.next(batch, (failing?.times ?? 0) < maxStepFailures / 2)
        failing = undefined
        if (waitMs > 0) work.at(Date.now() + Math.min(waitMs, tickMs))
        else void work.check()
      } catch (thrown) {
        if (closed.signal.aborted) return
        const failure = Failure.from(thrown)
        // What may pass, such as a full disk, is waited for.
        const times = Math.min((failing?.times ?? 0) + (failure.retryable ? 0 : 1), maxStepFailures)
        const isLast = times >= maxStepFailures
        const outcome = isLast ? 'is given up' : 'could not continue; this is retried'
        log.error(`A batch ${outcome}`, { batch: id, failures: times }, thrown)
        // Its row cannot even be read: the next start tries again.
        if (isLast && !batch) return end(id)
        const until = Date.now() + afterErrorMs * 2 ** Math.max(0, times - 1)
        failing = { status: batch?.status, times, until }
        work.at(until)
        if (!isLast || !batch) return
        // What cannot be written now is tried again with the step.
        await steps.giveUp(batch, failure).catch(() => {})
        void work.check()
      }
    }
  }

  function end(id: string): void {
    void unfinished.get(id)?.work.close()
    unfinished.delete(id)
    sweep.wake()
  }

  return {
    /** Continues the batches that have not ended. */
    async resume(): Promise<void> {
      for (const key of await store.batches.unfinished()) begin(key)
      sweep.wake()
    },

    /** Resolves once the batch survives a crash. Its file is checked afterwards. Throws Failure `not_found` and those of keys. */
    async create(batch: Omit<NewBatch, 'id' | 'outputFileId' | 'errorFileId'>): Promise<BatchRecord> {
      const ids = { id: newId('batch'), outputFileId: newId('file'), errorFileId: newId('file') }
      const { batch: created } = await store.batches.create({ ...batch, ...ids })
      begin(created)
      return created
    },
    /** Returns the endpoint that lines may have under this path; undefined without one. */
    endpoint: (path: string) => options.endpoints.find(path),
    ...pick(store.batches, 'find', 'list'),
    /** Undefined: no such batch. Throws Failure `batch_not_cancellable`. */
    cancel: (organizationId: string, id: string) => store.batches.cancel(organizationId, id, Date.now()),

    /** Stops after the current steps; the next start continues. */
    async close(): Promise<void> {
      closed.abort()
      await Promise.allSettled([...Array.from(unfinished.values(), ({ work }) => work.close()), sweep.close()])
    },
  }
}
export type Batches = ReturnType<typeof openBatches>
