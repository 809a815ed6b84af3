import { z } from 'zod'
import { integer, nullableInteger, nullableString, string } from '../../../core/schemas/fields.ts'
import { type BatchRecord, batchStatuses } from '../../../core/store/store.ts'
import { seconds } from '../../views/job-record.ts'

const at = (what: string) => nullableInteger(`Unix seconds when it ${what}; null if it did not.`)
const tokens = (what: string) => integer(what)

const BatchFaultObject = z.object({
  code: string('What is wrong, such as `duplicate_custom_id`.'),
  message: string('The same as a sentence.'),
  param: nullableString('Member of the line; null if none is named.'),
  line: nullableInteger('Number of the line, from 1; null for the whole file.'),
})

export const BatchObject = z
  .object({
    id: string('Id of the batch: `batch_…`.'),
    object: z.literal('batch'),
    endpoint: string('Endpoint of all lines.'),
    model: nullableString('Model of the first line; null before the file was checked.'),
    errors: z
      .object({
        object: z.literal('list'),
        data: z.array(BatchFaultObject).describe('At most 100 of them, in the order of the file.'),
      })
      .nullable()
      .describe('What is wrong with the input file; null if nothing is.'),
    input_file_id: string('Id of the input file.'),
    completion_window: string('Time in which the batch is to end, such as `24h`.'),
    status: z.enum(batchStatuses).describe('State of the batch.'),
    output_file_id: nullableString('File with the answers; null before the end and without any.'),
    error_file_id: nullableString('File with the errors of the other lines; null before the end and without any.'),
    created_at: integer('Unix seconds.'),
    in_progress_at: at('began to run'),
    expires_at: integer('Unix seconds after which lines that have not ended are given up.'),
    finalizing_at: at('began to write its output files'),
    completed_at: at('completed'),
    failed_at: at('failed, because its input file is invalid'),
    expired_at: at('expired'),
    cancelling_at: at('began to cancel'),
    cancelled_at: at('was cancelled'),
    request_counts: z
      .object({
        total: integer('Lines of the input file; 0 before it was checked.'),
        completed: integer('Lines with an answer.'),
        failed: integer('Lines that failed, or were not executed by the end.'),
      })
      .describe('How many lines there are, and what became of them so far.'),
    usage: z
      .object({
        input_tokens: tokens('Input tokens.'),
        input_tokens_details: z
          .object({ cached_tokens: tokens('Reused from the cache of the engine.') })
          .describe('What is known of the input tokens.'),
        output_tokens: tokens('Output tokens.'),
        output_tokens_details: z
          .object({ reasoning_tokens: tokens('Part of them that is reasoning.') })
          .describe('What is known of the output tokens.'),
        total_tokens: tokens('Both together.'),
      })
      .describe('What its lines have used so far.'),
    metadata: z.record(z.string(), z.string()).nullable().describe('Your own key-value pairs; null if none were sent.'),
  })
  .meta({ id: 'Batch', description: 'A file of requests that run in the background.' })

/** Returns a batch as the API shows it. */
export function batchObject(batch: BatchRecord): z.input<typeof BatchObject> {
  const { status, usage } = batch
  const endedAs = (ending: BatchRecord['status']) => (status === ending ? seconds(batch.finishedAt) : null)
  const hasFiles = batch.finishedAt !== null && status !== 'failed'
  return {
    id: batch.id,
    object: 'batch',
    endpoint: batch.endpoint,
    model: batch.modelId,
    errors: batch.faults && { object: 'list', data: batch.faults },
    input_file_id: batch.inputFileId,
    completion_window: batch.completionWindow,
    status,
    output_file_id: hasFiles && batch.completed > 0 ? batch.outputFileId : null,
    error_file_id: hasFiles && batch.failed > 0 ? batch.errorFileId : null,
    created_at: seconds(batch.createdAt)!,
    in_progress_at: seconds(batch.inProgressAt),
    expires_at: seconds(batch.expiresAt)!,
    finalizing_at: seconds(batch.finalizingAt),
    completed_at: endedAs('completed'),
    failed_at: endedAs('failed'),
    expired_at: endedAs('expired'),
    cancelling_at: seconds(batch.cancellingAt),
    cancelled_at: endedAs('cancelled'),
    request_counts: { total: batch.total, completed: batch.completed, failed: batch.failed },
    usage: {
      input_tokens: usage.inputTokens,
      input_tokens_details: { cached_tokens: usage.cachedTokens },
      output_tokens: usage.outputTokens,
      output_tokens_details: { reasoning_tokens: usage.reasoningTokens },
      total_tokens: usage.inputTokens + usage.outputTokens,
    },
    metadata: batch.metadata === null ? null : (JSON.parse(batch.metadata) as Record<string, string>),
  }
}
