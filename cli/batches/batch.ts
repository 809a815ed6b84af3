import { z } from 'zod'
import { isId } from '../../core/ids.ts'
import { type BatchStatus, batchStatuses } from '../../core/store/store.ts'
import type { Client } from '../client/client.ts'
import { refused, usageFailure } from '../terminal/exit-codes.ts'
import { printable } from '../terminal/paint.ts'

/** The members of a batch that commands read; the others are passed on. */
export const Batch = z.looseObject({
  id: z.string(),
  status: z.enum(batchStatuses),
  endpoint: z.string(),
  model: z.string().nullable(),
  created_at: z.number(),
  request_counts: z.object({ total: z.number(), completed: z.number(), failed: z.number() }),
  output_file_id: z.string().nullable(),
  error_file_id: z.string().nullable(),
  errors: z.object({ data: z.array(z.object({ message: z.string(), line: z.number().nullable() })) }).nullable(),
})
export type Batch = z.output<typeof Batch>
export const BatchPage = z.object({ data: z.array(Batch), has_more: z.boolean() })

export const batchPath = (id: string): string => `/v1/batches/${id}`

const ended: ReadonlySet<BatchStatus> = new Set(['completed', 'failed', 'expired', 'cancelled'])
export const hasEnded = ({ status }: Batch): boolean => ended.has(status)

export const getBatch = (client: Client, id: string, signal?: AbortSignal): Promise<Batch> =>
  client.ask({ method: 'GET', path: batchPath(id), answer: Batch, ...(signal ? { signal } : {}) })

/** Finds a batch by its id, or by the end of the id of one of the newest hundred. Throws `not_found` and usage. */
export async function findBatchId(client: Client, text: string): Promise<string> {
  if (text.startsWith('batch_') && isId(text)) return text
  const part = text.replace(/^batch_/, '').toUpperCase()
  if (part.length < 4 || !/^[0-9A-Z]+$/.test(part))
    throw usageFailure(`'${printable(text)}' is not a batch id. Give the whole id, or 4 or more characters of its end.`)
  const { data } = await client.ask({ method: 'GET', path: '/v1/batches?limit=100', answer: BatchPage })
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
