import type { ResponseItem, ResponsePart } from '../../../schemas/responses.ts'

/** Turns an item of an input, as it was sent, into the form that OpenAI's lists of items have. */
export function listedItem(item: ResponseItem): ResponseItem {
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
