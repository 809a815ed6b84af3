import { z } from 'zod'
import { integer, nullableString, number, string } from '../../core/schemas/fields.ts'
import { batchEventTypes } from '../../core/store/store.ts'

/**
 * Returns the schemas of the events that belong to the organization itself, each with these fields beside type and data.
 * Messages of webhooks have the same data.
 */
export function organizationEventSchemas<Head extends z.ZodRawShape>(head: Head) {
  const money = (text: string) => number(`${text}, in the currency of the prices.`)
  const count = (text: string) => integer(text)
  const quota = {
    spend_limit: money('The monthly spend limit'),
    spent: money('Cost of the work that has ended this month'),
    period_start: integer('Start of the calendar month in UTC, Unix seconds.'),
    period_end: integer('End of the month, Unix seconds, excluded.'),
    percent: z.union([z.literal(80), z.literal(100)]).describe('Which part of the limit is reached.'),
  }
  const ofOrganization = z.object({
    of: z.literal('organization').describe('The limit is that of the organization.'),
    ...quota,
  })
  const ofToken = z.object({
    of: z.literal('token').describe('The limit is that of a token.'),
    token_id: string('Id of the token whose work has reached it.'),
    token_name: nullableString('Name of the token; null if it no longer exists.'),
    ...quota,
  })
  return [
    z.object({
      ...head,
      type: z
        .enum(['quota.warning', 'quota.exceeded'])
        .describe('What happened: 80 % or 100 % of a monthly spend limit are spent. Each is sent once a month.'),
      data: z.discriminatedUnion('of', [ofOrganization, ofToken]).describe('The limit. Webhooks have the same data.'),
    }),
    z.object({
      ...head,
      type: z.enum(batchEventTypes).describe('How the batch has ended.'),
      data: z
        .object({
          object: z.literal('batch'),
          id: string('Id of the batch.'),
          status: string('State of the batch.'),
          endpoint: string('Endpoint of its lines.'),
          input_file_id: string('Id of its input file.'),
          output_file_id: nullableString('File with the answers; null without any.'),
          error_file_id: nullableString('File with the errors; null without any.'),
          request_counts: z
            .object({
              total: count('Lines of the input file.'),
              completed: count('Lines with an answer.'),
              failed: count('All other lines.'),
            })
            .describe('How many lines there were, and what became of them.'),
        })
        .describe('The batch. Webhooks have the same data.'),
    }),
    z.object({
      ...head,
      type: z.enum(['token.created', 'token.revoked']).describe('What happened.'),
      data: z
        .object({ token_id: string('Id of the token.'), name: string('Name of the token.') })
        .describe('The token. Webhooks have the same data.'),
    }),
  ] as const
}
