import type { Failure, FailureCode } from '../failure.ts'
import { durationText } from '../quantity-text.ts'
import type { FallbackReason } from '../schemas/fallback-reason.ts'
import type { Model } from './model.ts'
import type { ModelPlan } from './model-plan.ts'
import type { Fallback } from './name-fields.ts'

/** Failures of a model, not of the request. */
const ofModel: ReadonlySet<FailureCode> = new Set([
  'worker_error',
  'worker_crashed',
  'model_load_failed',
  'model_not_found',
  'model_warming_up',
  'no_capacity',
  'timeout',
])

/**
 * Returns why a fallback may do work that failed in this way before the first byte of its answer; undefined if none may.
 * `waited`: the work waits too long for its model, which may serve it later.
 */
export function fallbackReason({ code }: Pick<Failure, 'code'>, waited: boolean): FallbackReason | undefined {
  if (waited) return 'wait'
  if (code === 'context_length_exceeded') return 'context'
  return ofModel.has(code) ? 'failed' : undefined
}

/**
 * Returns which fallback would answer if a request came now, and why, as a sentence; undefined if the model itself would.
 * `plan`: what happens to a request for the model.
 */
export function plannedFallback(
  { id, fallbacks = [] }: Pick<Model, 'id' | 'fallbacks'>,
  { status, etaMs }: Pick<ModelPlan, 'status' | 'etaMs'>,
): { modelId: string; reason: FallbackReason; detail: string } | undefined {
  const late = fallbacks.find(({ wait }) => etaMs !== null && wait !== undefined && etaMs > wait)
  if (late)
    return {
      modelId: late.model,
      reason: 'wait',
      detail: `'${late.model}' would answer, because a request would wait longer for '${id}' than ${durationText(late.wait!)}.`,
    }
  const other = status === 'refused' ? fallbacks.find(one => isFor(one, 'failed')) : undefined
  return (
    other && {
      modelId: other.model,
      reason: 'failed',
      detail: `'${other.model}' would answer, because '${id}' cannot serve.`,
    }
  )
}

/** What an organization may spend on a fallback in a month, millionths of the currency unit; null without a limit. */
export const spendLimitOf = ({ monthly_spend_limit: limit }: Fallback): number | null =>
  limit === undefined ? null : Math.round(limit * 1e6)

/** Whether a fallback is for this reason. */
export const isFor = ({ when, wait }: Fallback, reason: FallbackReason): boolean =>
  reason === 'wait' ? wait !== undefined : when.includes(reason)
