import { z } from 'zod'
import { ResponseItem } from '../../../../core/dialects/responses/response-schemas.ts'
import { boolean, integer, nullableString, string } from '../../../../core/schemas/fields.ts'

export const ResponseDeleted = z
  .object({
    id: string('Id of the response.'),
    object: z.literal('response.deleted'),
    deleted: z.literal(true),
  })
  .meta({ id: 'ResponseDeleted', description: 'Confirms that a response was deleted.' })

export const ResponseItems = z
  .object({
    object: z.literal('list'),
    data: z.array(ResponseItem).describe('The items.'),
    first_id: nullableString('Id of the first item; null if there is none.'),
    last_id: nullableString('Id of the last item; null if there is none.'),
    has_more: boolean('Whether there are more after these.'),
  })
  .meta({ id: 'ResponseItemList', description: 'A page of the items of an input.' })

export const ResponseTokens = z
  .object({
    object: z.literal('response.input_tokens'),
    input_tokens: integer('Estimated tokens of the input.'),
  })
  .meta({ id: 'ResponseInputTokens', description: 'How many tokens an input has, estimated.' })
