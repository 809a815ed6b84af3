import type { ReferencedItems } from './response-messages.ts'
import type { ResponseItem } from './response-schemas.ts'

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
