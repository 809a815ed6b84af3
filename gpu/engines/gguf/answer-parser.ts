import { type Beginning, openReasoning, type ThinkMarks } from './reasoning.ts'
import { type AnswerEvent, append, openCallParser } from './tools/call-parser.ts'
import type { Calling } from './tools/calling.ts'

export interface AnswerOptions {
  marks: ThinkMarks | undefined
  beginning: Beginning
  calling: Calling | undefined
}

/**
 * Takes the text of an answer apart into thoughts, what it says, and calls. However the text is cut into pieces, the
 * events are the same when neighbours of one kind are joined.
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
    /** The rest, when no text follows. */
    end: (): AnswerEvent[] => parse(reasoning?.end() ?? { reasoning: '', content: '' }, true),
    /** Whether there were calls, and the last one is complete. */
    get called(): boolean {
      return calls !== undefined && calls.calls > 0 && !calls.calling
    },
  }
}
