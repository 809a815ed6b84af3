import type { ChatRequest } from '../../../core/schemas/chat.ts'
import { heldBack } from './stop.ts'
import type { ToolCalling } from './tools/call-form.ts'
import { type AnswerEvent, append, openToolCallParser } from './tools/call-parser.ts'

export interface AnswerOptions {
  marks: ThinkMarks | undefined
  beginning: Beginning
  calling: ToolCalling | undefined
}

/**
 * Splits the text of an answer into reasoning, content and tool calls. The joined events do not depend on how the text
 * was divided into pieces.
 */
export function openAnswerParser({ marks, beginning, calling }: AnswerOptions) {
  const reasoning = marks && beginning !== 'answer' ? openReasoning(marks, beginning) : undefined
  const calls =
    calling &&
    openToolCallParser(
      calling.form,
      calling.tools.map(({ tool }) => tool.function.name),
    )

  function parse({ reasoning: thoughts, content }: { reasoning: string; content: string }, last: boolean, cut = false) {
    const events: AnswerEvent[] = []
    append(events, { kind: 'reasoning', text: thoughts })
    if (calls) for (const event of [...calls.push(content), ...(last ? calls.end(cut) : [])]) append(events, event)
    else append(events, { kind: 'content', text: content })
    return events
  }

  return {
    push: (text: string): AnswerEvent[] => parse(reasoning?.push(text) ?? { reasoning: '', content: text }, false),
    /** Returns the remaining events after the last text. `cut`: the token limit ended the answer. */
    end: (cut: boolean): AnswerEvent[] => parse(reasoning?.end() ?? { reasoning: '', content: '' }, true, cut),
    /** Whether there was a tool call and the last one is complete. */
    get called(): boolean {
      return calls !== undefined && calls.calls > 0 && !calls.calling
    },
  }
}

export interface ThinkMarks {
  open: string
  close: string
}

const families: readonly ThinkMarks[] = [
  { open: '<think>', close: '</think>' },
  { open: '[THINK]', close: '[/THINK]' },
]

/** The reasoning marks found in a chat template; undefined for a model without reasoning. */
export const thinkMarksOf = (template: string): ThinkMarks | undefined =>
  families.find(({ close }) => template.includes(close))

/**
 * The state at the start of an answer: reasoning has begun in the prompt (`thinking`), may begin (`open`), or is over
 * (`answer`) because the prompt ends with a closed block, as templates write it when reasoning is turned off.
 */
export type Beginning = 'thinking' | 'open' | 'answer'
export function beginningOf(prompt: string, marks: ThinkMarks | undefined): Beginning {
  if (marks === undefined) return 'answer'
  const end = prompt.trimEnd()
  return end.endsWith(marks.open) ? 'thinking' : end.endsWith(marks.close) ? 'answer' : 'open'
}

/**
 * Splits an answer into reasoning and content, without the marks and the white space around the reasoning. The joined
 * texts do not depend on how the answer was divided into pieces.
 */
function openReasoning(marks: ThinkMarks, beginning: Beginning) {
  let state: 'open' | 'thinking' | 'thought' | 'answer' = beginning
  let held = ''
  let begun = false

  function take(more: string, last: boolean): { reasoning: string; content: string } {
    held += more
    let reasoning = ''
    if (state === 'open') {
      const text = held.trimStart()
      if (text.startsWith(marks.open)) {
        state = 'thinking'
        held = text.slice(marks.open.length)
      } else if (last || !marks.open.startsWith(text)) state = 'answer'
      else return { reasoning, content: '' }
    }
    if (state === 'thinking') {
      if (!begun) held = held.trimStart()
      if (held !== '') begun = true
      const close = held.indexOf(marks.close)
      const sure = close >= 0 ? close : last ? held.length : held.length - heldBack(held, [marks.close])
      reasoning = held.slice(0, sure).trimEnd()
      if (close < 0) {
        held = last ? '' : held.slice(reasoning.length)
        return { reasoning, content: '' }
      }
      state = 'thought'
      held = held.slice(close + marks.close.length)
    }
    const content = state === 'thought' ? held.trimStart() : held
    if (content !== '') state = 'answer'
    held = ''
    return { reasoning, content }
  }

  return {
    push: (text: string) => take(text, false),
    end: () => take('', true),
  }
}

/**
 * The template variables of the request, plus `reasoning_effort` under the names that templates use: `none` turns
 * reasoning off, any other value turns it on. Variables set by the caller take precedence.
 */
export function thinkingVariables({ reasoning_effort: effort, chat_template_kwargs: given }: ChatRequest) {
  if (effort === null || effort === undefined) return given ?? {}
  const thinks = effort !== 'none'
  return { reasoning_effort: effort, enable_thinking: thinks, thinking: thinks, ...given }
}
