import type { Plan } from '../store/store.ts'

/** Requests a minute by plan, from the specification's table; 0 is unlimited. */
export const planLimits: Record<Plan, { requestsPerMinute: number; jobsPerMinute: number }> = {
  free: { requestsPerMinute: 60, jobsPerMinute: 10 },
  pro: { requestsPerMinute: 600, jobsPerMinute: 100 },
  enterprise: { requestsPerMinute: 6_000, jobsPerMinute: 1_000 },
}

/** What counts against which limit. */
export type Bucket = 'api' | 'jobs'

const submission =
  /^(\/std)?\/v[12](\/|$)|^\/std\/|^\/rerank$|^\/slug\/|^\/fal\/|^\/api\/jobs$|^\/api\/workflows\/[^/]+\/execute$/

/**
 * A job submission is a POST or PUT to /std/v1/*, /slug/*, /api/jobs, or a workflow execution endpoint; every other
 * request is an API request. Taken literally from the specification; aliases count as what they stand for.
 */
export const bucketOf = (method: string, path: string): Bucket =>
  (method === 'POST' || method === 'PUT') && submission.test(path) ? 'jobs' : 'api'
