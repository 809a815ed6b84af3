import type { ChatRequest } from '../../../core/schemas/chat.ts'
import { heldBack } from './stop.ts'

/** The marks between which a model thinks before it answers. */
export interface ThinkMarks {
  open: string
  close: string
}

const families: readonly ThinkMarks[] = [
  { open: '<think>', close: '</think>' },
  { open: '[THINK]', close: '[/THINK]' },
]

/** The marks of a model that thinks, told by its chat template; undefined for one that does not. */
export const thinkMarksOf = (template: string): ThinkMarks | undefined =>
  families.find(({ close }) => template.includes(close))

/**
 * Where an answer stands when it begins: its thoughts have begun in the prompt already, may begin, or are over,
 * because the prompt ends with a closed block as templates write it when thinking is turned off.
 */
export type Beginning = 'thinking' | 'open' | 'answer'
export function beginningOf(prompt: string, marks: ThinkMarks | undefined): Beginning {
  if (marks === undefined) return 'answer'
  const end = prompt.trimEnd()
  return end.endsWith(marks.open) ? 'thinking' : end.endsWith(marks.close) ? 'answer' : 'open'
}

/**
 * Takes an answer apart into thoughts and what comes behind them. The marks and the white space around thoughts
 * belong to neither. However the text is cut into pieces, the parts join to the same texts.
 */
export function openReasoning(marks: ThinkMarks, beginning: Beginning) {
  let state: 'open' | 'thinking' | 'thought' | 'answer' = beginning
  let held = ''
  let begun = false

  function think(more: string, last: boolean): string {
    let text = held + more
    if (!begun) text = text.trimStart()
    if (text !== '') begun = true
    const at = text.indexOf(marks.close)
    if (at >= 0) {
      state = 'thought'
      held = text.slice(at + marks.close.length)
      return text.slice(0, at).trimEnd()
    }
    const sure = last ? text.trimEnd() : text.slice(0, text.length - heldBack(text, [marks.close])).trimEnd()
    held = last ? '' : text.slice(sure.length)
    return sure
  }

  function take(more: string, last: boolean): { reasoning: string; content: string } {
    let reasoning = ''
    if (state === 'open') {
      held += more
      more = ''
      const text = held.trimStart()
      if (text.startsWith(marks.open)) {
        state = 'thinking'
        held = text.slice(marks.open.length)
      } else if (last || !marks.open.startsWith(text)) state = 'answer'
      else return { reasoning, content: '' }
    }
    if (state === 'thinking') {
      reasoning = think(more, last)
      more = ''
    }
    if (state === 'thinking') return { reasoning, content: '' }
    let content = held + more
    held = ''
    if (state === 'thought') {
      content = content.trimStart()
      if (content !== '') state = 'answer'
    }
    return { reasoning, content }
  }

  return {
    push: (text: string) => take(text, false),
    /** The rest, when no text follows. */
    end: () => take('', true),
  }
}

/**
 * The variables of the caller for the chat template, and `reasoning_effort` in the names that templates know:
 * `none` asks for an answer without thoughts, anything else for one with. What the caller says himself counts.
 */
export function thinkingVariables({ reasoning_effort: effort, chat_template_kwargs: given }: ChatRequest) {
  if (effort === null || effort === undefined) return given ?? {}
  const thinks = effort !== 'none'
  return { reasoning_effort: effort, enable_thinking: thinks, thinking: thinks, ...given }
}
