import { Failure } from '../../../failure.ts'
import type { ResponseItem } from '../../../schemas/responses.ts'
import { listedItem } from './listed-item.ts'

export interface InputPageQuery {
  limit: number
  order: 'asc' | 'desc'
  /** Id of the last item of the page before. */
  after?: string | undefined
}

/** Returns a page of the items of an input, both as JSON text. Throws Failure `invalid_value`. */
export function inputPage(input: string, { limit, order, after }: InputPageQuery): string {
  const items = JSON.parse(input) as ResponseItem[]
  if (order === 'desc') items.reverse()
  const from = after === undefined ? 0 : items.findIndex(item => item.id === after) + 1
  if (after !== undefined && from === 0)
    throw new Failure('invalid_value', "'after' must be the id of an item of this input.", { param: 'after' })
  const data = items.slice(from, from + limit).map(listedItem)
  const [first_id, last_id] = [data[0]?.id ?? null, data.at(-1)?.id ?? null]
  return JSON.stringify({ object: 'list', data, first_id, last_id, has_more: from + limit < items.length })
}
