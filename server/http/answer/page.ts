import { z } from 'zod'
import { boolean, nullableString } from '../../../core/schemas/fields.ts'

/** Fields of every page of a list besides its entries. */
export const pageFields = {
  has_more: boolean('Whether there are more entries.'),
  next_cursor: nullableString('Send it as `after` to read the next page; null on the last page.'),
}

/** The query parameter of every list: how many entries a page has. */
export const pageLimit = z.coerce
  .number()
  .int()
  .min(1)
  .max(100)
  .default(20)
  .describe('Most entries of the page, 1 to 100.')

/** Describes the query parameter `after` of a list. */
export const cursorDescription = '`next_cursor` of the page before. Default: the first page.'
