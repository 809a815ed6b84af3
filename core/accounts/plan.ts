import type { Plan } from '../store/store.ts'

/** Requests a minute by plan, from the specification's table; 0 is unlimited. */
export const planLimits: Record<Plan, { requestsPerMinute: number; jobsPerMinute: number }> = {
  free: { requestsPerMinute: 60, jobsPerMinute: 10 },
  pro: { requestsPerMinute: 600, jobsPerMinute: 100 },
  enterprise: { requestsPerMinute: 6_000, jobsPerMinute: 1_000 },
}

/**
 * The share of the GPUs by plan, while more than one organization waits for the same model: an enterprise has four times
 * what a free one has. Small figures, so that nobody waits long behind those who pay.
 */
export const planShares: Record<Plan, number> = { free: 1, pro: 2, enterprise: 4 }

/**
 * The rate limits. A job submission is a POST or PUT to /std/v1/*, /slug/*, /api/jobs, or a workflow execution endpoint;
 * every other request is an API request. Taken literally from the specification; a retry counts as the submission that it
 * is. Each route says its own.
 */
export type Bucket = 'api' | 'jobs'
