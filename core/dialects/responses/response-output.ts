import { isId } from '../../ids.ts'
import { argumentsOf } from '../chat-terms.ts'
import type { ToolFunction } from './response-tools.ts'

const itemPrefixes = {
  message: 'msg',
  function_call: 'fc',
  function_call_output: 'fco',
  custom_tool_call: 'ctc',
  custom_tool_call_output: 'ctco',
  reasoning: 'rs',
} as const

/** Returns the id of an item of a response's output, or of its input. It contains the id of the response. */
export const itemId = (type: string, responseId: string, index: number, from: 'input' | 'output' = 'output'): string =>
  `${itemPrefixes[type as keyof typeof itemPrefixes] ?? 'item'}_${responseId.slice('resp_'.length)}${from === 'input' ? 'i' : 'o'}${index}`

/** Returns the response that has the item; undefined for an id that was not made here. */
export function responseOfItem(id: string): string | undefined {
  const ulid = /^[a-z]+_([0-9A-Z]{26})[io]\d{1,6}$/.exec(id)?.[1]
  const found = `resp_${ulid}`
  return ulid !== undefined && isId(found) ? found : undefined
}

/** Sends one event of a response. */
type Emit = (type: string, members: object) => void

interface OpenItem {
  kind: 'reasoning' | 'message' | 'function_call' | 'custom_tool_call'
  index: number
  id: string
  text: string
  logprobs: unknown[]
  /** Of a message: whether its text is a refusal. */
  refusal: boolean
  /** Of a call. */
  call?: { index: number; call_id: string; name: string; namespace?: string }
}

/**
 * Builds the items of a response's output from the pieces of a chat completion, and emits the events of each. An item is
 * open until a piece of another kind follows.
 */
export class ResponseOutput {
  /** Complete items. */
  readonly items: object[] = []
  readonly #responseId: string
  readonly #summarizes: boolean
  readonly #functions: readonly ToolFunction[]
  readonly #emit: Emit
  #open: OpenItem | undefined

  /** `summarizes`: whether the reasoning is sent as a summary. `functions`: those that stand for tools of the request. */
  constructor(responseId: string, summarizes: boolean, functions: readonly ToolFunction[], emit: Emit) {
    this.#responseId = responseId
    this.#summarizes = summarizes
    this.#functions = functions
    this.#emit = emit
  }

  reason(text: string): void {
    const open = this.#begin('reasoning')
    open.text += text
    const at = { item_id: open.id, output_index: open.index }
    if (this.#summarizes) this.#emit('response.reasoning_summary_text.delta', { ...at, summary_index: 0, delta: text })
    else this.#emit('response.reasoning_text.delta', { ...at, content_index: 0, delta: text })
  }

  say(text: string, logprobs: unknown[] = [], refusal = false): void {
    const open = this.#begin('message', refusal)
    open.text += text
    open.logprobs.push(...logprobs)
    const at = { item_id: open.id, output_index: open.index, content_index: 0 }
    if (open.refusal) this.#emit('response.refusal.delta', { ...at, delta: text })
    else this.#emit('response.output_text.delta', { ...at, delta: text, logprobs })
  }

  /** A piece of the function call at `index`; its first piece has an id and a name. */
  call(
    index: number,
    piece: { id?: string | undefined; name?: string | undefined; arguments?: string | undefined },
  ): void {
    if (this.#open?.call?.index !== index) {
      this.close()
      const tool = this.#functions.find(({ name }) => name === piece.name)
      const open = this.#item(tool?.type === 'custom' ? 'custom_tool_call' : 'function_call', false)
      open.call = { index, call_id: piece.id ?? open.id, name: tool?.ownName ?? piece.name ?? '' }
      if (tool?.namespace !== undefined) open.call.namespace = tool.namespace
      this.#added(open)
    }
    const open = this.#open!
    if (!piece.arguments) return
    open.text += piece.arguments
    // The text of a custom tool is known when its JSON is whole.
    if (open.kind === 'custom_tool_call') return
    this.#emit('response.function_call_arguments.delta', {
      item_id: open.id,
      output_index: open.index,
      delta: piece.arguments,
    })
  }

  /** Ends the open item. */
  close(status: 'completed' | 'incomplete' = 'completed'): void {
    const open = this.#open
    if (!open) return
    this.#open = undefined
    const { id: item_id, index: output_index, text, call } = open
    const at = { item_id, output_index }
    if (open.kind === 'custom_tool_call') {
      const input = inputOf(text)
      this.#emit('response.custom_tool_call_input.delta', { ...at, delta: input })
      this.#emit('response.custom_tool_call_input.done', { ...at, input })
    } else if (open.kind === 'function_call')
      this.#emit('response.function_call_arguments.done', { ...at, name: call!.name, arguments: text })
    else if (open.kind === 'message') {
      const content = { ...at, content_index: 0 }
      if (open.refusal) this.#emit('response.refusal.done', { ...content, refusal: text })
      else this.#emit('response.output_text.done', { ...content, text, logprobs: open.logprobs })
      this.#emit('response.content_part.done', { ...content, part: partOf(open, true) })
    } else if (this.#summarizes) {
      this.#emit('response.reasoning_summary_text.done', { ...at, summary_index: 0, text })
      this.#emit('response.reasoning_summary_part.done', {
        ...at,
        summary_index: 0,
        part: { type: 'summary_text', text },
      })
    } else {
      this.#emit('response.reasoning_text.done', { ...at, content_index: 0, text })
      this.#emit('response.content_part.done', { ...at, content_index: 0, part: { type: 'reasoning_text', text } })
    }
    const item = this.#shown(open, status)
    this.items[output_index] = item
    this.#emit('response.output_item.done', { output_index, item })
  }

  #begin(kind: 'reasoning' | 'message', refusal = false): OpenItem {
    if (this.#open?.kind === kind && this.#open.refusal === refusal) return this.#open
    this.close()
    const open = this.#item(kind, refusal)
    this.#added(open)
    const at = { item_id: open.id, output_index: open.index }
    if (kind === 'message')
      this.#emit('response.content_part.added', { ...at, content_index: 0, part: partOf(open, false) })
    else if (this.#summarizes)
      this.#emit('response.reasoning_summary_part.added', {
        ...at,
        summary_index: 0,
        part: { type: 'summary_text', text: '' },
      })
    else
      this.#emit('response.content_part.added', { ...at, content_index: 0, part: { type: 'reasoning_text', text: '' } })
    return open
  }

  #item(kind: OpenItem['kind'], refusal: boolean): OpenItem {
    const index = this.items.length
    return { kind, index, id: itemId(kind, this.#responseId, index), text: '', logprobs: [], refusal }
  }

  #added(open: OpenItem): void {
    this.#open = open
    this.#emit('response.output_item.added', { output_index: open.index, item: this.#shown(open, 'in_progress') })
  }

  #shown(open: OpenItem, status: 'in_progress' | 'completed' | 'incomplete'): object {
    const { id, text, call } = open
    const begun = status !== 'in_progress'
    if (open.kind === 'message')
      return { id, type: 'message', status, role: 'assistant', content: begun ? [partOf(open, true)] : [] }
    if (open.kind === 'function_call' || open.kind === 'custom_tool_call') {
      const { call_id, name, namespace } = call!
      const said = open.kind === 'function_call' ? { arguments: text } : { input: begun ? inputOf(text) : '' }
      return { id, type: open.kind, status, call_id, name, ...(namespace === undefined ? {} : { namespace }), ...said }
    }
    const summary = this.#summarizes && begun ? [{ type: 'summary_text', text }] : []
    const content = !this.#summarizes && begun ? [{ type: 'reasoning_text', text }] : []
    return { id, type: 'reasoning', status, summary, content }
  }
}

/** Returns the text of a custom tool from its arguments; arguments that were cut off as they are. */
function inputOf(text: string): string {
  const { input } = argumentsOf(text)
  return typeof input === 'string' ? input : text
}

const partOf = ({ text, refusal, logprobs }: OpenItem, begun: boolean): object =>
  refusal
    ? { type: 'refusal', refusal: begun ? text : '' }
    : { type: 'output_text', text: begun ? text : '', annotations: [], logprobs: begun ? logprobs : [] }
