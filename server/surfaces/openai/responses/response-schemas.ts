import { z } from 'zod'
import { ResponseItem } from '../../../../core/dialects/responses/response-schemas.ts'

export const ResponseDeleted = z
  .object({
    id: z.string().describe('Id of the response.'),
    object: z.literal('response.deleted'),
    deleted: z.literal(true),
  })
  .meta({ id: 'ResponseDeleted', description: 'Confirms that a response was deleted.' })

export const ResponseItems = z
  .object({
    object: z.literal('list'),
    data: z.array(ResponseItem).describe('The items.'),
    first_id: z.string().nullable().describe('Id of the first item; null if there is none.'),
    last_id: z.string().nullable().describe('Id of the last item; null if there is none.'),
    has_more: z.boolean().describe('Whether there are more after these.'),
  })
  .meta({ id: 'ResponseItemList', description: 'A page of the items of an input.' })

export const ResponseTokens = z
  .object({
    object: z.literal('response.input_tokens'),
    input_tokens: z.int().describe('Estimated tokens of the input.'),
  })
  .meta({ id: 'ResponseInputTokens', description: 'How many tokens an input has, estimated.' })
