import type { BatchFault } from '../store/store.ts'
import { maxCustomId } from './batch-limits.ts'

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

const fault = (code: string, param: string | null, message: string): Fault => ({ code, param, message })
const missing = (param: string) => fault('missing_required_parameter', param, `'${param}' is missing.`)

/** Returns the path of an endpoint in its short form: `/std/v1/x` and `/std/openai/v1/x` are `/v1/x`, a slug has no `/` before it. */
export const shortEndpoint = (path: string): string =>
  path.replace(/^\/std(?:\/openai)?(?=\/v1\/)/, '').replace(/^\/(?=slug\/)/, '')

const slugPath = /^slug\/(.+)$/s

/** Returns the slug in the short form of an endpoint; undefined for one that has none. */
export const slugIn = (endpoint: string): string | undefined => slugPath.exec(endpoint)?.[1]

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Reads a line of an input file. Pure. Returns its request, or the first fault of it. */
export function readLine(text: string, { endpoint, namesModel }: BatchTarget): BatchRequest | { fault: Fault } {
  let line: unknown
  try {
    line = JSON.parse(text)
  } catch {
    return { fault: fault('invalid_json_line', null, 'The line is not valid JSON. Each line must be one JSON object.') }
  }
  if (!isObject(line))
    return { fault: fault('invalid_json_line', null, 'The line is not a JSON object. Each line must be one.') }
  const { custom_id: customId, method, url, body } = line
  if (customId === undefined) return { fault: missing('custom_id') }
  if (typeof customId !== 'string' || customId === '' || customId.length > maxCustomId)
    return {
      fault: fault('invalid_value', 'custom_id', `'custom_id' must be a text of 1 to ${maxCustomId} characters.`),
    }
  if (method === undefined) return { fault: missing('method') }
  if (method !== 'POST') return { fault: fault('invalid_method', 'method', "'method' must be POST.") }
  if (url === undefined) return { fault: missing('url') }
  if (typeof url !== 'string' || url === '')
    return { fault: fault('invalid_url', 'url', `'url' must be ${endpoint}, the endpoint of the batch.`) }
  if (shortEndpoint(url) !== endpoint)
    return {
      fault: fault(
        'mismatched_url',
        'url',
        `'url' is ${url.slice(0, 128)}, and the endpoint of the batch is ${endpoint}. All lines must have the endpoint of the batch.`,
      ),
    }
  if (body === undefined) return { fault: missing('body') }
  if (!isObject(body)) return { fault: fault('invalid_value', 'body', "'body' must be a JSON object.") }
  if (namesModel && body.model === undefined) return { fault: missing('body.model') }
  if (namesModel && (typeof body.model !== 'string' || body.model === ''))
    return { fault: fault('invalid_value', 'body.model', "'body.model' must be the id of a model.") }
  if (body.stream === true)
    return {
      fault: fault(
        'unsupported_parameter',
        'body.stream',
        "'body.stream' must not be true: answers of a batch are not streamed.",
      ),
    }
  return { customId, body }
}
