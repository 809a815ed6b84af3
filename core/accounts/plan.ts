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

/** What counts against which limit. */
export type Bucket = 'api' | 'jobs'

const submission =
  /^(\/std)?\/v[12](\/|$)|^\/std\/|^\/rerank$|^\/slug\/|^\/fal\/(queue|run)\/|^\/api\/jobs(\/[^/]+\/retry)?$|^\/api\/workflows\/([^/]+\/execute|run)$|^\/api\/workflow-executions\/[^/]+\/retry$/

/**
 * A job submission is a POST or PUT to /std/v1/*, /slug/*, /api/jobs, or a workflow execution endpoint; every other
 * request is an API request. Taken literally from the specification; aliases count as what they stand for, and a retry
 * as the submission that it is.
 */
export const bucketOf = (method: string, path: string): Bucket =>
  (method === 'POST' || method === 'PUT') && submission.test(path) ? 'jobs' : 'api'
