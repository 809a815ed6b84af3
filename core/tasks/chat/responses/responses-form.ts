import type { ChatResponse } from '../../../schemas/chat.ts'
import { ResponsesRequest } from '../../../schemas/responses.ts'
import type { ChatAnswerFacts, ChatForm } from '../chat-form.ts'
import {
  callItem,
  messageItem,
  type OutputItem,
  reasoningItem,
  reasonOf,
  refusalPart,
  responseObject,
  tailOf,
  textPart,
} from './response-object.ts'
import { responsesBody } from './responses-body.ts'
import { responsesStream } from './responses-stream.ts'

function answer(request: ResponsesRequest, completion: ChatResponse, facts: ChatAnswerFacts): object {
  const { message, finish_reason, logprobs } = completion.choices[0]!
  const tail = tailOf(facts.jobId, completion.id)
  const reason = reasonOf(finish_reason)
  const calls = message.tool_calls ?? []
  const hasText = (message.content ?? '') !== ''
  const output: OutputItem[] = []
  const id = () => `${tail}${output.length}`
  /** Only the last item can have been cut off. */
  const statusAt = (isLast: boolean) => (reason && isLast ? 'incomplete' : 'completed')
  if (message.reasoning_content) {
    const isLast = !hasText && !message.refusal && calls.length === 0
    output.push(reasoningItem(id(), message.reasoning_content, request, statusAt(isLast)))
  }
  // An answer without anything is an empty text.
  if (hasText || message.refusal || (calls.length === 0 && output.length === 0)) {
    const texts = hasText || !message.refusal ? [textPart(message.content ?? '', logprobsOf(logprobs))] : []
    const refusals = message.refusal ? [refusalPart(message.refusal)] : []
    output.push(messageItem(id(), [...texts, ...refusals], statusAt(calls.length === 0)))
  }
  calls.forEach(({ id: callId, function: { name, arguments: args } }, at) =>
    output.push(callItem(id(), { id: callId, name, arguments: args }, statusAt(at === calls.length - 1))),
  )
  return responseObject(request, {
    tail,
    createdAt: facts.createdAt,
    model: completion.model,
    status: reason ? 'incomplete' : 'completed',
    output,
    usage: completion.usage,
    reason,
  })
}

/** Returns the log probabilities of the tokens of a text; none if they were not requested. */
const logprobsOf = (logprobs: unknown): unknown[] => {
  const content = (logprobs as { content?: unknown } | null | undefined)?.content
  return Array.isArray(content) ? content : []
}

/** OpenAI's responses as a form of a conversation. */
export const responsesForm: ChatForm<ResponsesRequest> = {
  schema: ResponsesRequest,
  isStream: ({ stream }) => stream === true,
  chatBody: responsesBody,
  remembered: request => ({ ...request, input: '' }),
  answer,
  stream: (request, facts) => responsesStream(request, facts),
}
