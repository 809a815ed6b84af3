import { type Continued, nothingContinued } from '../../../../core/dialects/responses/continuation.ts'
import type { Call } from '../../../http/request/call.ts'
import type { Owners } from '../../../http/request/owners.ts'

/** Bytes around a member that are read: an id is close to it. */
const around = 160
/** The most places that are read; what further ones name is refused as absent. */
const maxFound = 256
const previous = /"previous_response_id"\s*:\s*"(resp_[0-9A-Z]{26})"/
const item = /"id"\s*:\s*"([a-z]+_[0-9A-Z]{26}[io]\d{1,6})"/g

/** Yields the text around each place of the body that has the mark. Searching bytes is fast, also in large bodies. */
function* near(body: Buffer, mark: string): Generator<string> {
  let found = 0
  for (let at = body.indexOf(mark); at >= 0 && found < maxFound; at = body.indexOf(mark, at + mark.length), found++)
    yield body.toString('latin1', Math.max(0, at - around), at + mark.length + around)
}

/**
 * Reads the stored conversations and items that the body of a request names. The body is searched and not parsed, because
 * it may be large; an id that only looks like one costs a lookup.
 */
export async function continuedBy(
  call: Call,
  body: Buffer,
  { responses }: Pick<Owners, 'responses'>,
): Promise<Continued> {
  const responseIds = new Set<string>()
  const itemIds = new Set<string>()
  for (const text of near(body, '"previous_response_id"')) {
    const id = previous.exec(text)?.[1]
    if (id !== undefined) responseIds.add(id)
  }
  for (const text of near(body, '"item_reference"')) for (const [, id] of text.matchAll(item)) itemIds.add(id!)
  if (responseIds.size === 0 && itemIds.size === 0) return nothingContinued
  return await responses.continued(call.caller.organizationId, {
    responseIds: [...responseIds].slice(0, 1),
    itemIds: [...itemIds],
  })
}
