import { invalid } from '../../failure.ts'
import type { ReferencedItems } from './response-messages.ts'
import type { ResponseItem, ResponsePart } from './response-schemas.ts'

/**
 * A response that is kept, as JSON text: its input and the response itself. Both may be large, so they are parsed where
 * the request is parsed, in a thread if they are.
 */
export interface KeptResponse {
  input: string
  answer: string
}

/** What a request may continue. */
export interface Continued {
  /** The responses of earlier conversations, oldest first, by the id of their last one. */
  earlier: Readonly<Record<string, readonly KeptResponse[]>>
  /** The responses that have the items to which the request refers. */
  holders: readonly KeptResponse[]
}

/** A request that continues nothing. */
export const nothingContinued: Continued = { earlier: {}, holders: [] }

/** Characters of everything that a request may continue. */
export const continuedLength = ({ earlier, holders }: Continued): number =>
  [...Object.values(earlier).flat(), ...holders].reduce(
    (sum, { input, answer }) => sum + input.length + answer.length,
    0,
  )

/** Returns the items of a response: of its input and of its output. */
export const keptItems = ({ input, answer }: KeptResponse): ResponseItem[] => [
  ...(JSON.parse(input) as ResponseItem[]),
  ...(JSON.parse(answer) as { output: ResponseItem[] }).output,
]

/** Returns the items of the holders by their ids. */
export const referencedItems = ({ holders }: Pick<Continued, 'holders'>): ReferencedItems =>
  Object.fromEntries(holders.flatMap(keptItems).flatMap(item => (item.id ? [[item.id, item]] : [])))

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
  if (after !== undefined && from === 0) throw invalid('after', "'after' must be the id of an item of this input.")
  const data = items.slice(from, from + limit).map(listedItem)
  const [first_id, last_id] = [data[0]?.id ?? null, data.at(-1)?.id ?? null]
  return JSON.stringify({ object: 'list', data, first_id, last_id, has_more: from + limit < items.length })
}

/** Turns an item of an input, as it was sent, into the form that OpenAI's lists of items have. */
function listedItem(item: ResponseItem): ResponseItem {
  if (item.type === 'item_reference') return item
  const status = item.status ?? 'completed'
  if (item.type !== 'message') return { ...item, status }
  const { content } = item
  const parts = typeof content === 'string' ? [{ type: 'text', text: content }] : (content ?? [])
  return { ...item, status, content: parts.map(part => listedPart(part, item.role === 'assistant')) }
}

/** Parts of answers have lists of annotations and log probabilities, which are always empty here. */
type ListedPart = ResponsePart & { annotations?: []; logprobs?: [] }

function listedPart(part: ResponsePart, isAnswer: boolean): ListedPart {
  const type = part.type === 'text' ? (isAnswer ? 'output_text' : 'input_text') : part.type
  return type === 'output_text' ? { annotations: [], logprobs: [], ...part, type } : { ...part, type }
}
