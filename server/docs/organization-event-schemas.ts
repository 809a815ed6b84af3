import { z } from 'zod'
import { batchEventTypes } from '../../core/store/store.ts'

/**
 * Returns the schemas of the events that belong to the organization itself, each with these fields beside type and data.
 * Messages of webhooks have the same data.
 */
export function organizationEventSchemas<Head extends z.ZodRawShape>(head: Head) {
  const money = (text: string) => z.number().describe(`${text}, in the currency of the prices.`)
  const count = (text: string) => z.int().describe(text)
  const quota = {
    spend_limit: money('The monthly spend limit'),
    spent: money('Cost of the work that has ended this month'),
    period_start: z.int().describe('Start of the calendar month in UTC, Unix seconds.'),
    period_end: z.int().describe('End of the month, Unix seconds, excluded.'),
    percent: z.union([z.literal(80), z.literal(100)]).describe('Which part of the limit is reached.'),
  }
  const ofOrganization = z.object({
    of: z.literal('organization').describe('The limit is that of the organization.'),
    ...quota,
  })
  const ofToken = z.object({
    of: z.literal('token').describe('The limit is that of a token.'),
    token_id: z.string().describe('Id of the token whose work has reached it.'),
    token_name: z.string().nullable().describe('Name of the token; null if it no longer exists.'),
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
          id: z.string().describe('Id of the batch.'),
          status: z.string().describe('State of the batch.'),
          endpoint: z.string().describe('Endpoint of its lines.'),
          input_file_id: z.string().describe('Id of its input file.'),
          output_file_id: z.string().nullable().describe('File with the answers; null without any.'),
          error_file_id: z.string().nullable().describe('File with the errors; null without any.'),
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
        .object({ token_id: z.string().describe('Id of the token.'), name: z.string().describe('Name of the token.') })
        .describe('The token. Webhooks have the same data.'),
    }),
  ] as const
}
