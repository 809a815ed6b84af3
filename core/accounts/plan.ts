import type { Plan } from '../store/store.ts'

/** Requests per minute by plan, from the specification's table; 0 is unlimited. */
const planLimits: Record<string, { requestsPerMinute: number; jobsPerMinute: number }> = {
  free: { requestsPerMinute: 60, jobsPerMinute: 10 },
  pro: { requestsPerMinute: 600, jobsPerMinute: 100 },
  enterprise: { requestsPerMinute: 6_000, jobsPerMinute: 1_000 },
}

/** The limits of a plan; those of the smallest one for a plan that is not known. */
export const limitsOfPlan = (plan: Plan) => planLimits[plan] ?? planLimits.free!

/**
 * The share of GPU time by plan, while several organizations wait for the same model: enterprise gets four times as
 * much as free. The factors are small, so that the free plan does not wait long behind the paid ones.
 */
const planShares: Record<string, number> = { free: 1, pro: 2, enterprise: 4 }
export const shareOfPlan = (plan: Plan): number => planShares[plan] ?? 1

/**
 * The rate limits. A job submission is a POST or PUT to /std/v1/*, /slug/*, /api/jobs, or a workflow execution
 * endpoint; every other request is an API request. Taken literally from the specification; a retry counts as a
 * submission. Each route names its bucket.
 */
export type Bucket = 'api' | 'jobs'
