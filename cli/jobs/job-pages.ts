import type { Client } from '../client/client.ts'
import { type Job, JobPage, listPath } from './job.ts'

/** Which jobs to list. */
export interface Filter {
  status?: string | undefined
  task?: string | undefined
  model?: string | undefined
  /** Unix seconds. */
  since?: number | undefined
}

const pageSize = 100

/** Yields jobs, newest first. Requests the next page only when the caller reads on. */
export async function* jobPages(
  client: Client,
  { status, task, model, since }: Filter,
  signal?: AbortSignal,
  limit = pageSize,
): AsyncGenerator<Job, void, void> {
  const query = { status, task, model_id: model, created_after: since, limit: Math.min(limit, pageSize) }
  let after: string | undefined
  do {
    const path = listPath({ ...query, after })
    const page = await client.ask({ method: 'GET', path, answer: JobPage, ...(signal ? { signal } : {}) })
    yield* page.jobs
    // A page can be empty although more pages follow.
    after = page.has_more ? (page.next_cursor ?? undefined) : undefined
  } while (after !== undefined)
}
