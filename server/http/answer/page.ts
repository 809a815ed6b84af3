import { z } from 'zod'
import { boolean, nullableString, optional, string } from '../../../core/schemas/fields.ts'

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

/** The query parameters of a list whose entries, and so its cursors, have these ids. */
export const pageQuery = (isCursor: (id: string) => boolean) => ({
  limit: pageLimit,
  after: optional(z.string().refine(isCursor, 'This is no cursor of the list.'), cursorDescription),
})

/** Returns the fields of a page after which the list continues behind `next`; null on the last page. */
export const pageEnd = (next: string | null) => ({ has_more: next !== null, next_cursor: next })

/** Splits entries of which one more than `limit` was read: those of the page, and the fields of its end. */
export function pageOf<Entry extends { id: string }>(found: readonly Entry[], limit: number) {
  const entries = found.slice(0, limit)
  return { entries, end: pageEnd(found.length > limit ? entries.at(-1)!.id : null) }
}

/** The schema of an answer that confirms a deletion. `what` is the noun for the object. */
// oxlint-disable-next-line no-unnecessary-type-parameters -- the type of the answer has the name
export const deletedObject = <Name extends string, More extends z.ZodRawShape>(
  id: string,
  description: string,
  [object, what]: readonly [object: Name, what: string],
  more: More,
) =>
  z
    .object({ id: string(`Id of the ${what}.`), object: z.literal(object), deleted: z.literal(true) })
    .extend(more)
    .meta({ id, description })

/** The member of some confirmations in place of a literal, which their description shows. */
export const alwaysTrue = { deleted: boolean('Always true.') }

/** Returns the answer that confirms a deletion. */
export const deletedAnswer = <Name extends string>(object: Name, id: string) => ({
  id,
  object,
  deleted: true as const,
})

/** Returns a page of a list in OpenAI's form. `hasMore`: whether there are entries after it. */
export const listPage = <Entry extends { id?: string | null | undefined }>(data: Entry[], hasMore: boolean) => ({
  object: 'list' as const,
  data,
  first_id: data[0]?.id ?? null,
  last_id: data.at(-1)?.id ?? null,
  has_more: hasMore,
})
