import type { Admission, Requester } from '../admission/admission.ts'
import type { JobSpend } from '../admission/spend.ts'
import { withoutLimits } from '../admission/spender.ts'
import { Failure } from '../failure.ts'
import type { Log } from '../log.ts'
import { fallbackReason, isFor, spendLimitOf } from '../models/fallbacks.ts'
import type { Model } from '../models/model.ts'
import { modelOfWork } from '../models/model-names.ts'
import type { Registry } from '../models/registry.ts'
import type { FallbackReason } from '../schemas/fallback-reason.ts'
import type { Region } from '../schemas/region.ts'
import type { JobRecord } from '../store/store.ts'
import { taskRecord } from '../tasks/registry.ts'

/** The model that does a job from its next attempt on. */
export interface JobFallback {
  modelId: string
  reason: FallbackReason
  /** What the job may cost now, millionths of the currency unit. */
  held: number
  /**
   * Call it before that is stored: the job holds `held` in place of the earlier amount. False, and nothing changes, if that is
   * more than is left of the limit of the fallback.
   */
  begin: () => boolean
  /** Call it once that is stored. */
  moved: () => void
  /** Call it if it was not stored, because the job has ended meanwhile: it holds nothing any more. */
  dropped: () => void
}

/** A job waits for its model for longer than a fallback of that allows. */
export class JobWaitsTooLong extends Failure {
  /** For how long, milliseconds. */
  readonly waitsMs: number

  constructor(modelId: string, waitsMs: number) {
    super('no_capacity', `The job waits for '${modelId}' for longer than its fallbacks allow.`, { retryAfterMs: 100 })
    this.waitsMs = waitsMs
  }
}

/**
 * Returns the model that does a job whose model has failed it, or for which it waits too long; undefined if none may. Cheap
 * for models without fallbacks.
 */
export type FallbackOfJob = (job: JobRecord, failure: Failure) => Promise<JobFallback | undefined>

/**
 * Finds fallbacks of jobs: of the model that the job named, those after the one that has failed. The token that created the
 * job must be allowed to use it.
 */
export function openJobFallbacks(dependencies: {
  registry: Pick<Registry, 'find'>
  admission: Pick<Admission, 'admit'>
  requesterOf: (organizationId: string, tokenId: string, region: Region | undefined) => Promise<Requester | undefined>
  spend: Pick<JobSpend, 'hold' | 'release' | 'mayFallBack'>
  /** Expected milliseconds until one more job of a model would start; null if unknown. */
  etaMs: (modelId: string) => number | null
  log: Log
}): FallbackOfJob {
  const { registry, admission, requesterOf, spend, etaMs, log } = dependencies
  return async (job, failure) => {
    const { id, task, modelId, organizationId, tokenId } = job
    // An adapter has fallbacks of its own.
    const requested = job.fallbackReason === null ? modelOfWork(registry.find, job) : registry.find(job.requestedModel!)
    const { fallbacks = [] } = requested ?? {}
    const reason = fallbacks.length === 0 ? undefined : fallbackReason(failure, failure instanceof JobWaitsTooLong)
    if (reason === undefined) return undefined
    const after = fallbacks.findIndex(({ model }) => model === modelId) + 1
    const left = fallbacks.slice(after).filter(one => isFor(one, reason))
    const owner = left.length > 0 ? await requesterOf(organizationId, tokenId, job.region ?? undefined) : undefined
    if (!owner) return undefined
    const requester: Requester = job.relayed ? { ...owner, isRelayed: true } : owner
    for (const one of left)
      try {
        const { model, wait } = one
        const limit = spendLimitOf(one)
        // What a node may cost is held when it runs: it could then exceed the limit.
        if (job.parent && limit !== null) continue
        // It would wait as long for that one.
        if (reason === 'wait' && (etaMs(model) ?? 0) > wait!) continue
        if (failure instanceof JobWaitsTooLong && failure.waitsMs < wait!) continue
        const estimate = ({ context_length }: Pick<Model, 'context_length'>) => {
          const contextLength = context_length ?? null
          const inputs = JSON.parse(job.inputs) as Record<string, unknown>
          return taskRecord(task).metering.estimate({ inputs, length: job.inputs.length, contextLength })
        }
        // The job of a node holds its part when it runs.
        const held = job.parent ? {} : { estimate }
        const kind = job.class === 'batch' ? 'line' : job.parent ? 'node' : 'job'
        const { spender: requesting, hold } = admission.admit(requester, { kind, task, modelId: model, ...held })
        const spender = { ...withoutLimits(requesting), fallback: { modelId: model, limit } }
        if (!spend.mayFallBack(spender, hold)) continue
        const begin = () => {
          if (!spend.mayFallBack(spender, hold)) return false
          spend.release(id)
          spend.hold(id, spender, hold)
          return true
        }
        const moved = () =>
          log.warn('A fallback does a job', { job: id, from: modelId, model, reason, failure: failure.message })
        return { modelId: model, reason, held: hold, begin, moved, dropped: () => spend.release(id) }
      } catch (thrown) {
        if (Failure.from(thrown).code === 'internal_error') throw thrown
      }
    return undefined
  }
}
