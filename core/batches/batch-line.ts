import { isObject } from '../json.ts'
import type { Task } from '../schemas/task.ts'
import type { BatchFault, JobRecord } from '../store/store.ts'

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

/** The most lines of an input file. */
export const maxLines = 50_000
/** The largest input file, bytes. */
export const maxInputBytes = 200 << 20
/** The longest `custom_id`, characters. */
const maxCustomId = 512
/** The most faults of an input file that are reported. */
export const maxFaults = 100
/** How many attempts a line has: the first, and three retries. */
export const maxAttempts = 4
/** The most lines of an organization that are jobs at a time. */
const maxOpen = 128

/**
 * Returns how many lines of one batch may be jobs at a time. All batches of an organization share its part, and leave it
 * half of its limit of pending jobs (0: none) for other work.
 */
export function batchWindow(batches: number, pendingJobs: number): number {
  const open = pendingJobs > 0 ? Math.min(maxOpen, Math.floor(pendingJobs / 2)) : maxOpen
  return Math.max(1, Math.floor(open / Math.max(1, batches)))
}

/** A line of an input file that has the right form. */
export interface BatchRequest {
  customId: string
  body: Record<string, unknown>
}

/** What every line of a batch must name. */
export interface BatchTarget {
  /** The endpoint of the batch, without `/std`. */
  endpoint: string
  /** Whether the body names the model. */
  namesModel: boolean
}

type Fault = Omit<BatchFault, 'line'>

const fault = (code: string, param: string | null, message: string): { fault: Fault } => ({
  fault: { code, param, message },
})
const missing = (param: string) => fault('missing_required_parameter', param, `'${param}' is missing.`)

/** Returns the path of an endpoint in its short form: `/std/v1/x` and `/std/openai/v1/x` are `/v1/x`, a slug has no `/` before it. */
export const shortEndpoint = (path: string): string =>
  path.replace(/^\/std(?:\/openai)?(?=\/v1\/)/, '').replace(/^\/(?=slug\/)/, '')

const slugPath = /^slug\/(.+)$/s

/** Returns the slug in the short form of an endpoint; undefined for one that has none. */
export const slugIn = (endpoint: string): string | undefined => slugPath.exec(endpoint)?.[1]

/** What every line of a batch of this endpoint must name. */
export const targetOf = ({ endpoint }: { endpoint: string }): BatchTarget => ({
  endpoint,
  namesModel: slugIn(endpoint) === undefined,
})

/** Reads a line of an input file. Pure. Returns its request, or the first fault of it. */
export function readLine(text: string, { endpoint, namesModel }: BatchTarget): BatchRequest | { fault: Fault } {
  let line: unknown
  try {
    line = JSON.parse(text)
  } catch {
    return fault('invalid_json_line', null, 'The line is not valid JSON. Each line must be one JSON object.')
  }
  if (!isObject(line)) return fault('invalid_json_line', null, 'The line is not a JSON object. Each line must be one.')
  const { custom_id: customId, method, url, body } = line
  if (customId === undefined) return missing('custom_id')
  if (typeof customId !== 'string' || customId === '' || customId.length > maxCustomId)
    return fault('invalid_value', 'custom_id', `'custom_id' must be a text of 1 to ${maxCustomId} characters.`)
  if (method === undefined) return missing('method')
  if (method !== 'POST') return fault('invalid_method', 'method', "'method' must be POST.")
  if (url === undefined) return missing('url')
  if (typeof url !== 'string' || url === '')
    return fault('invalid_url', 'url', `'url' must be ${endpoint}, the endpoint of the batch.`)
  if (shortEndpoint(url) !== endpoint)
    return fault(
      'mismatched_url',
      'url',
      `'url' is ${url.slice(0, 128)}, and the endpoint of the batch is ${endpoint}. All lines must have the endpoint of the batch.`,
    )
  if (body === undefined) return missing('body')
  if (!isObject(body)) return fault('invalid_value', 'body', "'body' must be a JSON object.")
  if (namesModel && body.model === undefined) return missing('body.model')
  if (namesModel && (typeof body.model !== 'string' || body.model === ''))
    return fault('invalid_value', 'body.model', "'body.model' must be the id of a model.")
  if (body.stream === true)
    return fault(
      'unsupported_parameter',
      'body.stream',
      "'body.stream' must not be true: answers of a batch are not streamed.",
    )
  return { customId, body }
}
