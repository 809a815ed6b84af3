import type { Failure } from '../../failure.ts'
import type { ChatChunk, ChatStreamForm } from '../chat-form.ts'
import { anthropicError } from './anthropic-error.ts'
import { anthropicUsage, messageId, signature, stopReasonOf } from './anthropic-terms.ts'

const event = (type: string, members: object): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`

/** The block that is open: its kind, or the index of its tool call. */
type Open = 'thinking' | 'text' | number

/** Begins the translation of a stream into typed events. */
export function anthropicStream(): ChatStreamForm {
  let begun = false
  let index = -1
  let open: Open | undefined
  let finish: string | null = null
  let refused = false
  let usage: ChatChunk['usage']

  const close = (): string => {
    if (open === undefined) return ''
    const signed =
      open === 'thinking' ? event('content_block_delta', { index, delta: { type: 'signature_delta', signature } }) : ''
    open = undefined
    return signed + event('content_block_stop', { index })
  }
  const start = (what: Open, block: object): string => {
    if (open === what) return ''
    const closed = close()
    open = what
    index++
    return closed + event('content_block_start', { index, content_block: block })
  }
  const delta = (value: object): string => event('content_block_delta', { index, delta: value })

  function begin({ id, model }: ChatChunk): string {
    begun = true
    const message = {
      id: messageId(id),
      type: 'message',
      role: 'assistant',
      model,
      content: [],
      stop_reason: null,
      stop_sequence: null,
      // The engine counts at the end: `message_delta` has the counts.
      usage: anthropicUsage(undefined),
    }
    return event('message_start', { message }) + event('ping', {})
  }

  function toolCalls(calls: NonNullable<ChatChunk['choices'][number]['delta']['tool_calls']>): string {
    let text = ''
    for (const { index: at, id, function: called } of calls) {
      if (called?.name !== undefined && id !== undefined)
        text += start(at, { type: 'tool_use', id, name: called.name, input: {} })
      if (called?.arguments) text += delta({ type: 'input_json_delta', partial_json: called.arguments })
    }
    return text
  }

  return {
    contentType: 'text/event-stream; charset=utf-8',
    chunk(chunk) {
      let text = begun ? '' : begin(chunk)
      if (chunk.usage) usage = chunk.usage
      const [choice] = chunk.choices
      if (!choice) return text
      const { content, reasoning_content, refusal, tool_calls } = choice.delta
      if (reasoning_content)
        text +=
          start('thinking', { type: 'thinking', thinking: '', signature: '' }) +
          delta({ type: 'thinking_delta', thinking: reasoning_content })
      for (const said of [content, refusal])
        if (said)
          text += start('text', { type: 'text', text: '', citations: null }) + delta({ type: 'text_delta', text: said })
      if (refusal) refused = true
      if (tool_calls) text += toolCalls(tool_calls)
      finish = choice.finish_reason ?? finish
      return text
    },
    end: () =>
      close() +
      event('message_delta', {
        delta: { stop_reason: refused ? 'refusal' : stopReasonOf(finish), stop_sequence: null },
        usage: anthropicUsage(usage),
      }) +
      event('message_stop', {}),
    failure: (failure: Failure, requestId: string) =>
      `event: error\ndata: ${JSON.stringify(anthropicError(failure, requestId))}\n\n`,
  }
}
