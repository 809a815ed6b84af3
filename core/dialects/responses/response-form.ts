import type { ChatForm } from '../chat-form.ts'
import type { Continued } from './continuation.ts'
import { inputItems, responseBody } from './response-body.ts'
import type { RememberedResponse } from './response-object.ts'
import { itemId } from './response-output.ts'
import { ResponseRequest } from './response-schemas.ts'
import { chunkOf, responseStream } from './response-stream.ts'

/** What the server knows of a new response besides its request. */
export interface ResponseContext extends Continued {
  id: string
}

/** Longer inputs, which have images in them, are not kept. Characters of JSON. */
const maxKeptInput = 4 << 20

/** OpenAI's form of a response. */
export const responseForm: ChatForm<ResponseRequest, ResponseContext, RememberedResponse> = {
  schema: ResponseRequest,
  isStream: ({ stream, background }) => stream === true && background !== true,
  chatBody: responseBody,
  remembered,
  answer(remembered, completion, facts) {
    const stream = responseStream(remembered, facts)
    stream.chunk(chunkOf(completion))
    stream.end()
    return stream.ended!
  },
  stream: responseStream,
}

function remembered(request: ResponseRequest, { id }: ResponseContext): RememberedResponse {
  const { input: _, ...rest } = request
  const items = inputItems(request).map((item, at) => ({
    ...item,
    type: item.type ?? 'message',
    id: item.id ?? itemId(item.type ?? 'message', id, at, 'input'),
  }))
  const input = request.store === false ? undefined : JSON.stringify(items)
  const isStored = input !== undefined && input.length <= maxKeptInput
  return { id, isStored, input: isStored ? input : null, request: rest }
}
