import type { Admission, Admitted, Requester } from '../admission/admission.ts'
import { Failure } from '../failure.ts'
import { fallbackReason, isFor, spendLimitOf } from '../models/fallbacks.ts'
import type { NamedWork } from '../models/model-names.ts'
import type { CallAttempt, CallFallbacks } from './call.ts'
import type { QueueForecast } from './job-facts.ts'

/**
 * Prepares and admits a call for another model. Undefined once the answer has begun. Rejects with
 * the Failure that prevents it.
 */
export type OtherModel = (work: NamedWork) => Promise<{ admitted: Admitted; attempt: CallAttempt } | undefined>

/**
 * Returns the fallbacks of an admitted call that its requester may use; undefined without any. A fallback that cannot do the
 * work, such as one without a feature that the request uses, is passed over.
 */
export function callFallbacks(
  requester: Requester,
  { model, requestedModel }: Admitted,
  prepare: OtherModel,
  {
    admission,
    jobs,
  }: {
    admission: Pick<Admission, 'fallbacksFor'>
    jobs: { queueForecast: (modelId: string) => QueueForecast }
  },
): CallFallbacks | undefined {
  let left = admission.fallbacksFor(requester, model)
  if (left.length === 0) return undefined
  return {
    get waitMs() {
      return left.find(({ wait }) => wait !== undefined)?.wait ?? Number.POSITIVE_INFINITY
    },
    get whenFailed() {
      return left.some(({ when }) => when.includes('failed'))
    },
    async next(failure, waited) {
      // Without a limit of its own the wait has ended at that of the model or the caller: the request would be refused.
      const reason = waited && !left.some(({ wait }) => wait !== undefined) ? 'failed' : fallbackReason(failure, waited)
      if (reason === undefined) return undefined
      for (const one of left.filter(each => isFor(each, reason))) {
        left = left.filter(each => each !== one)
        // It would wait as long for that one.
        if (reason === 'wait' && (jobs.queueForecast(one.model).etaMs ?? 0) > one.wait!) continue
        try {
          const named = { modelId: one.model, requestedModel: requestedModel ?? model.id, fallbackReason: reason }
          const other = await prepare(named)
          return other && { ...other, reason, spendLimit: spendLimitOf(one) }
        } catch (thrown) {
          if (Failure.from(thrown).code === 'internal_error') throw thrown
        }
      }
      return undefined
    },
  }
}
