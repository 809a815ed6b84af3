import type { ResponsesRequest } from '../../../schemas/responses.ts'
import {
  asSummary,
  callItem,
  messageItem,
  type OutputItem,
  reasoningItem,
  refusalPart,
  textPart,
} from './response-object.ts'

/** An item of a streamed output that is not whole yet. Its methods return the events to send. */
export interface OpenItem {
  readonly kind: 'message' | 'reasoning' | 'call'
  begin(): string
  add(delta: string, part: 'text' | 'refusal', logprobs: unknown[]): string
  /** Returns the last events, and the whole item. */
  close(status: 'completed' | 'incomplete'): { text: string; item: OutputItem }
}

export interface OpenItemOptions {
  id: string
  outputIndex: number
  event: (type: string, members: object) => string
}

/** Opens a message, whose parts are texts and refusals. */
export function openMessage({ id, outputIndex, event }: OpenItemOptions): OpenItem {
  const at = { item_id: `msg_${id}`, output_index: outputIndex }
  const parts: { kind: 'text' | 'refusal'; text: string; logprobs: unknown[] }[] = []
  const contentOf = ({ kind, text, logprobs }: (typeof parts)[number]) =>
    kind === 'text' ? textPart(text, logprobs) : refusalPart(text)
  const last = () => ({ ...at, content_index: parts.length - 1 })

  const beginPart = (kind: 'text' | 'refusal'): string => {
    const before = endPart()
    const part = { kind, text: '', logprobs: [] }
    parts.push(part)
    return before + event('response.content_part.added', { ...last(), part: contentOf(part) })
  }
  const endPart = (): string => {
    const part = parts.at(-1)
    if (!part) return ''
    const done =
      part.kind === 'text'
        ? event('response.output_text.done', { ...last(), text: part.text, logprobs: part.logprobs })
        : event('response.refusal.done', { ...last(), refusal: part.text })
    return done + event('response.content_part.done', { ...last(), part: contentOf(part) })
  }

  return {
    kind: 'message',
    begin: () =>
      event('response.output_item.added', { output_index: outputIndex, item: messageItem(id, [], 'in_progress') }),
    add(delta, kind, logprobs) {
      const begun = parts.at(-1)?.kind === kind ? '' : beginPart(kind)
      const part = parts.at(-1)!
      part.text += delta
      for (const logprob of logprobs) part.logprobs.push(logprob)
      return (
        begun +
        (kind === 'text'
          ? event('response.output_text.delta', { ...last(), delta, logprobs })
          : event('response.refusal.delta', { ...last(), delta }))
      )
    },
    close(status) {
      const begun = parts.length === 0 ? beginPart('text') : ''
      const ended = endPart()
      const item = messageItem(id, parts.map(contentOf), status)
      return {
        text: begun + ended + event('response.output_item.done', { output_index: outputIndex, item }),
        item,
      }
    },
  }
}

/** Opens a call of a function. */
export function openCall({
  id,
  outputIndex,
  event,
  call,
}: OpenItemOptions & { call: { id: string; name: string } }): OpenItem {
  const at = { item_id: `fc_${id}`, output_index: outputIndex }
  let args = ''
  return {
    kind: 'call',
    begin: () =>
      event('response.output_item.added', {
        output_index: outputIndex,
        item: callItem(id, { ...call, arguments: '' }, 'in_progress'),
      }),
    add(delta) {
      args += delta
      return event('response.function_call_arguments.delta', { ...at, delta })
    },
    close(status) {
      const item = callItem(id, { ...call, arguments: args }, status)
      const done = event('response.function_call_arguments.done', { ...at, name: call.name, arguments: args })
      return { text: done + event('response.output_item.done', { output_index: outputIndex, item }), item }
    },
  }
}

/** Opens reasoning, which is sent as its summary if the request asks for one. */
export function openReasoning({
  id,
  outputIndex,
  event,
  request,
}: OpenItemOptions & { request: ResponsesRequest }): OpenItem {
  const summarized = asSummary(request)
  const at = {
    item_id: `rs_${id}`,
    output_index: outputIndex,
    ...(summarized ? { summary_index: 0 } : { content_index: 0 }),
  }
  const name = summarized ? 'response.reasoning_summary_text' : 'response.reasoning_text'
  const part = (text: string) => ({ type: summarized ? 'summary_text' : 'reasoning_text', text })
  const partEvents = summarized ? 'response.reasoning_summary_part' : 'response.content_part'
  let text = ''
  return {
    kind: 'reasoning',
    begin: () =>
      event('response.output_item.added', {
        output_index: outputIndex,
        item: reasoningItem(id, undefined, request, 'in_progress'),
      }) + event(`${partEvents}.added`, { ...at, part: part('') }),
    add(delta) {
      text += delta
      return event(`${name}.delta`, { ...at, delta })
    },
    close(status) {
      const item = reasoningItem(id, text, request, status)
      const done = event(`${name}.done`, { ...at, text }) + event(`${partEvents}.done`, { ...at, part: part(text) })
      return { text: done + event('response.output_item.done', { output_index: outputIndex, item }), item }
    },
  }
}
