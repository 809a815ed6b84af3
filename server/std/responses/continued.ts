import type { Continued } from '../../../core/tasks/chat/responses/response-body.ts'
import type { Call } from '../../call.ts'
import type { Owners } from '../../owners.ts'

const maxIds = 256
const previous = /"previous_response_id"\s*:\s*"(resp_[0-9A-Z]{26})"/g
const item = /"id"\s*:\s*"([a-z]+_[0-9A-Z]{26}[io]\d{1,6})"/g

/**
 * Reads the stored conversations and items that the body of a request names. The body is searched and not parsed, because
 * it may be large; an id that only looks like one costs a lookup.
 */
export async function continuedBy(
  call: Call,
  body: Buffer,
  { responses }: Pick<Owners, 'responses'>,
): Promise<Continued> {
  const continues = body.includes('"previous_response_id"')
  const refers = body.includes('"item_reference"')
  if (!continues && !refers) return { earlier: {}, referenced: {} }
  const text = body.toString('latin1')
  const idsOf = (pattern: RegExp) => [...new Set([...text.matchAll(pattern)].map(found => found[1]!))].slice(0, maxIds)
  return await responses.continued(call.caller.organizationId, {
    responseIds: continues ? idsOf(previous).slice(0, 1) : [],
    itemIds: refers ? idsOf(item) : [],
  })
}
