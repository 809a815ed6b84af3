import type { Client } from '../client.ts'
import { type Job, JobPage, listPath } from './job.ts'

/** What jobs are listed. */
export interface Filter {
  status?: string | undefined
  task?: string | undefined
  model?: string | undefined
  /** Unix seconds. */
  since?: number | undefined
}

const pageSize = 100

/** Jobs, newest first, page after page as they are read. Stop reading and no more is asked for. */
export async function* jobPages(
  client: Client,
  { status, task, model, since }: Filter,
  signal?: AbortSignal,
  limit = pageSize,
): AsyncGenerator<Job, void, void> {
  const want = { status, task, model_id: model, created_after: since, limit: Math.min(limit, pageSize) }
  let after: string | undefined
  do {
    const path = listPath({ ...want, after })
    const page = await client.ask({ method: 'GET', path, answer: JobPage, ...(signal ? { signal } : {}) })
    yield* page.jobs
    // A page may be empty although there are more.
    after = page.has_more ? (page.next_cursor ?? undefined) : undefined
  } while (after !== undefined)
}
