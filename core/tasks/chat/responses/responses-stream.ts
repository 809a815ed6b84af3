import { Failure } from '../../../failure.ts'
import type { ResponsesRequest } from '../../../schemas/responses.ts'
import type { ChatAnswerFacts, ChatChunk, ChatStreamForm } from '../chat-form.ts'
import { type OpenItem, openCall, openMessage, openReasoning } from './open-item.ts'
import { type OutputItem, type ResponseState, reasonOf, responseObject, tailOf } from './response-object.ts'

/** Begins the translation of a stream into the typed events of OpenAI, each with its `sequence_number`. */
export function responsesStream(request: ResponsesRequest, facts: ChatAnswerFacts): ChatStreamForm {
  let sequence = 0
  let state: ResponseState | undefined
  let open: OpenItem | undefined
  /** Index of the tool call that is open, or was the last one. */
  let callIndex = -1
  let finish: string | null = null
  let usage: ChatChunk['usage']
  const output: OutputItem[] = []

  const event = (type: string, members: object): string =>
    `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: sequence++, ...members })}\n\n`
  const whole = (type: string): string => event(type, { response: responseObject(request, state!) })

  const begin = ({ id, model }: { id: string; model: string }): string => {
    if (state) return ''
    state = { tail: tailOf(facts.jobId, id), createdAt: facts.createdAt, model, status: 'in_progress', output: [] }
    return whole('response.created') + whole('response.in_progress')
  }
  const close = (status: 'completed' | 'incomplete' = 'completed'): string => {
    if (!open) return ''
    const { text, item } = open.close(status)
    output.push(item)
    open = undefined
    return text
  }
  /** Returns the open item of a kind, after closing one of another kind, and the events of doing so. */
  const opened = (kind: OpenItem['kind'], create: (options: Parameters<typeof openMessage>[0]) => OpenItem) => {
    if (open?.kind === kind) return { item: open, text: '' }
    const text = close()
    open = create({ id: `${state!.tail}${output.length}`, outputIndex: output.length, event })
    return { item: open, text: text + open.begin() }
  }
  const said = (
    kind: 'message' | 'reasoning',
    part: 'text' | 'refusal',
    delta: string | null | undefined,
    logprobs: unknown[] = [],
  ): string => {
    if (!delta) return ''
    const { item, text } = opened(kind, options =>
      kind === 'message' ? openMessage(options) : openReasoning({ ...options, request }),
    )
    return text + item.add(delta, part, logprobs)
  }
  type CallDelta = NonNullable<ChatChunk['choices'][number]['delta']['tool_calls']>[number]
  const called = ({ index, id, function: fn }: CallDelta): string => {
    if (index < callIndex || (index === callIndex && open?.kind !== 'call'))
      throw new Failure('worker_error', 'The engine continued a tool call that it had ended. Trying again may help.')
    const before = index > callIndex ? close() : ''
    callIndex = index
    const { item, text } = opened('call', options =>
      openCall({ ...options, call: { id: id ?? `call_${state!.tail}${index}`, name: fn?.name ?? '' } }),
    )
    return before + text + (fn?.arguments ? item.add(fn.arguments, 'text', []) : '')
  }

  return {
    contentType: 'text/event-stream; charset=utf-8',
    chunk(chunk) {
      let text = begin(chunk)
      if (chunk.usage) usage = chunk.usage
      for (const { delta, finish_reason, logprobs } of chunk.choices) {
        text += said('reasoning', 'text', delta.reasoning_content)
        text += said('message', 'text', delta.content, logprobsOf(logprobs))
        text += said('message', 'refusal', delta.refusal)
        for (const call of delta.tool_calls ?? []) text += called(call)
        finish = finish_reason ?? finish
      }
      return text
    },
    end() {
      let text = begin({ id: '', model: request.model })
      const reason = reasonOf(finish)
      if (!open && output.length === 0) text += opened('message', openMessage).text
      text += close(reason ? 'incomplete' : 'completed')
      const status = reason ? ('incomplete' as const) : ('completed' as const)
      state = { ...state!, status, output, usage, reason }
      return text + whole(`response.${status}`)
    },
    failure(failure) {
      let text = begin({ id: '', model: request.model })
      const item = open?.close('incomplete').item
      state = { ...state!, status: 'failed', output: item ? [...output, item] : output, usage, failure }
      text += whole('response.failed')
      const { code, message, param = null } = failure
      return text + event('error', { code, message, param, error: { type: failure.type, code, message, param } })
    },
  }
}

const logprobsOf = (logprobs: unknown): unknown[] => {
  const content = (logprobs as { content?: unknown } | null | undefined)?.content
  return Array.isArray(content) ? content : []
}
