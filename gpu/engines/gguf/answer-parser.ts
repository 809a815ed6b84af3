import { type Beginning, openReasoning, type ThinkMarks } from './reasoning.ts'
import { type AnswerEvent, append, openCallParser } from './tools/call-parser.ts'
import type { Calling } from './tools/tool-choice.ts'

export interface AnswerOptions {
  marks: ThinkMarks | undefined
  beginning: Beginning
  calling: Calling | undefined
}

/**
 * Splits the text of an answer into reasoning, content and tool calls. The joined events do not depend on how the text
 * was divided into pieces.
 */
export function openAnswerParser({ marks, beginning, calling }: AnswerOptions) {
  const reasoning = marks && beginning !== 'answer' ? openReasoning(marks, beginning) : undefined
  const calls =
    calling &&
    openCallParser(
      calling.form,
      calling.tools.map(({ tool }) => tool.function.name),
    )

  function parse({ reasoning: thoughts, content }: { reasoning: string; content: string }, last: boolean) {
    const events: AnswerEvent[] = []
    append(events, { kind: 'reasoning', text: thoughts })
    if (calls) for (const event of [...calls.push(content), ...(last ? calls.end() : [])]) append(events, event)
    else append(events, { kind: 'content', text: content })
    return events
  }

  return {
    push: (text: string): AnswerEvent[] => parse(reasoning?.push(text) ?? { reasoning: '', content: text }, false),
    /** Returns the remaining events after the last text. */
    end: (): AnswerEvent[] => parse(reasoning?.end() ?? { reasoning: '', content: '' }, true),
    /** Whether there was a tool call and the last one is complete. */
    get called(): boolean {
      return calls !== undefined && calls.calls > 0 && !calls.calling
    },
  }
}
