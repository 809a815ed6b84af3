import type { Task } from '../schemas/task.ts'
import type { JobRecord } from '../store/store.ts'

/** What the answer of a line is made from. */
export interface LineResult {
  /** The job of the line, which has completed. */
  job: JobRecord
  /** Returns the body of the line. */
  request: () => Record<string, unknown>
  /** What this server's own URLs begin with for the caller. */
  origin: string
}

/** How the lines of one endpoint become jobs, and their results answers. */
export interface BatchEndpoint {
  /** Its path without `/std`, such as `/v1/embeddings`, or `slug/` and a slug. */
  path: string
  task: Task
  /** The model if the path names it; else the body does. */
  modelId?: string
  /** The slug in the path; null for other endpoints. */
  slug: string | null
  /** Returns the body of the task's own endpoint. Throws Failure for an invalid body. Absent where the body is that already. */
  inputs?: (body: Record<string, unknown>) => object
}

/** The endpoints that lines of batches may have. */
export interface BatchEndpoints {
  /** Returns the endpoint of a path in its short form; undefined without one. Slugs change with the models. */
  find(path: string): BatchEndpoint | undefined
  /**
   * Returns the body of a line's answer: JSON text in pieces. Works also after the model was removed. Fails with Failure
   * before its first piece if a part of the result is no longer kept.
   */
  answer(path: string, result: LineResult): AsyncIterable<string | Uint8Array>
}
