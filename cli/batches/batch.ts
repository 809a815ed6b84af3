import { isId } from '../../core/ids.ts'
import type { BatchStatus } from '../../core/store/store.ts'
import { type Api, type Client, dataOf } from '../client/client.ts'
import { refused, usageFailure } from '../terminal/exit-codes.ts'
import { printable } from '../terminal/paint.ts'

export type Batch = Api['Batch']

const ended: ReadonlySet<BatchStatus> = new Set(['completed', 'failed', 'expired', 'cancelled'])
export const hasEnded = ({ status }: Batch): boolean => ended.has(status)

export const getBatch = ({ api }: Client, id: string, signal?: AbortSignal): Promise<Batch> =>
  dataOf(api.GET('/std/v1/batches/{id}', { params: { path: { id } }, signal }))

export const listBatches = ({ api }: Client, limit: number): Promise<Api['BatchList']> =>
  dataOf(api.GET('/std/v1/batches', { params: { query: { limit } } }))

/** Finds a batch by its id, or by the end of the id of one of the newest hundred. Throws `not_found` and usage. */
export async function findBatchId(client: Client, text: string): Promise<string> {
  if (text.startsWith('batch_') && isId(text)) return text
  const part = text.replace(/^batch_/, '').toUpperCase()
  if (part.length < 4 || !/^[0-9A-Z]+$/.test(part))
    throw usageFailure(`'${printable(text)}' is not a batch id. Give the whole id, or 4 or more characters of its end.`)
  const { data } = await listBatches(client, 100)
  const found = data.filter(({ id }) => id.endsWith(part))
  if (found.length === 1) return found[0]!.id
  if (found.length > 1) throw usageFailure(`'${printable(text)}' matches ${found.length} batches. Give more of the id.`)
  throw refused('not_found', `No batch has an id that ends with '${printable(text)}'. See: infer batch list`)
}

/** `in_progress` as people write it. */
export const batchStatusText = ({ status }: Batch): string => status.replace('_', ' ')

/** How many lines there are and what became of them. */
export function countsText({ request_counts: { total, completed, failed } }: Batch): string {
  const counts = `${completed} of ${total} completed`
  return failed > 0 ? `${counts}, ${failed} failed` : counts
}
