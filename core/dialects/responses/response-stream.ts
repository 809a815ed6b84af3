import type { Failure } from '../../failure.ts'
import type { ChatResponse } from '../../schemas/chat.ts'
import type { ChatAnswerFacts, ChatChunk, ChatStreamForm } from '../chat-form.ts'
import { type RememberedResponse, type ResponseState, responseObject } from './response-object.ts'
import { ResponseOutput } from './response-output.ts'
import { toolFunctions, toolLists } from './response-tools.ts'

/** The translation of a streamed answer, which also knows the response as it is at last. */
export interface ResponseStream extends ChatStreamForm {
  /** The response; undefined until it has ended. */
  readonly ended: object | undefined
  /** Returns the events with which every response begins. */
  begin(): string
}

/**
 * Begins the translation of a streamed chat completion into the typed events of a response, numbered from 0. The events
 * of a whole answer are made in the same way, so that both have the same items and ids.
 */
export function responseStream(
  remembered: RememberedResponse,
  { createdAt }: Pick<ChatAnswerFacts, 'createdAt'>,
  nowSeconds = () => Math.floor(Date.now() / 1000),
): ResponseStream {
  let sequence = 0
  let text = ''
  let begun = false
  let finish: string | null = null
  let usage: ChatChunk['usage']
  let ended: object | undefined
  const created = Math.floor(createdAt / 1000)
  const { reasoning } = remembered.request
  const summarizes = (reasoning?.summary ?? reasoning?.generate_summary ?? null) !== null
  const output = new ResponseOutput(
    remembered.id,
    summarizes,
    toolFunctions(toolLists(remembered.request.tools ?? [], [])),
    emit,
  )

  function emit(type: string, members: object): void {
    text += `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: sequence++, ...members })}\n\n`
  }
  function taken(): string {
    const all = text
    text = ''
    return all
  }
  const shown = (state: Omit<ResponseState, 'createdAt' | 'output' | 'usage'>) =>
    responseObject(remembered, { ...state, createdAt: created, output: output.items.slice(), usage })

  function begin(): void {
    if (begun) return
    begun = true
    const response = shown({ status: 'in_progress' })
    emit('response.created', { response })
    emit('response.in_progress', { response })
  }

  function chunk({ choices, usage: reported }: ChatChunk): void {
    begin()
    usage = reported ?? usage
    const [choice] = choices
    if (!choice) return
    const { reasoning_content, content, refusal, tool_calls } = choice.delta
    if (reasoning_content) output.reason(reasoning_content)
    if (content) output.say(content, logprobsOf(choice.logprobs))
    if (refusal) output.say(refusal, [], true)
    for (const { index, id, function: called } of tool_calls ?? [])
      output.call(index, { id, name: called?.name, arguments: called?.arguments })
    finish = choice.finish_reason ?? finish
  }

  return {
    contentType: 'text/event-stream; charset=utf-8',
    get ended() {
      return ended
    },
    begin() {
      begin()
      return taken()
    },
    chunk(piece) {
      chunk(piece)
      return taken()
    },
    end() {
      const incomplete = incompleteReasons[finish ?? '']
      const status = incomplete ? 'incomplete' : 'completed'
      output.close(status)
      ended = shown({ status, incomplete, completedAt: nowSeconds() })
      emit(`response.${status}`, { response: ended })
      return taken()
    },
    failure(failure: Failure) {
      begin()
      output.close('incomplete')
      const status = failure.code === 'cancelled' ? 'cancelled' : 'failed'
      ended = shown({ status, error: responseError(failure) })
      emit('response.failed', { response: ended })
      return taken()
    },
  }
}

const incompleteReasons: Record<string, 'max_output_tokens' | 'content_filter' | undefined> = {
  length: 'max_output_tokens',
  content_filter: 'content_filter',
}

/** OpenAI's clients know few codes. */
export const responseError = ({ code, message }: Pick<Failure, 'code' | 'message'>) => ({
  code: code === 'rate_limit' || code === 'quota_exceeded' ? 'rate_limit_exceeded' : 'server_error',
  message,
})

const logprobsOf = (logprobs: unknown): unknown[] =>
  (logprobs as { content?: unknown[] | null } | null | undefined)?.content ?? []

/** Turns a whole completion into one event of a stream. */
export function chunkOf(completion: ChatResponse): ChatChunk {
  const { message, finish_reason, logprobs } = completion.choices[0]!
  const { tool_calls, ...delta } = message
  return {
    id: completion.id,
    created: completion.created,
    model: completion.model,
    choices: [
      {
        index: 0,
        delta: { ...delta, tool_calls: (tool_calls ?? []).map((call, index) => ({ index, ...call })) },
        logprobs,
        finish_reason,
      },
    ],
    usage: completion.usage,
  }
}
