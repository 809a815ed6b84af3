import type { AnswerPart } from '../chat/answer.ts'
import { footer } from '../chat/session.ts'
import { printable } from '../paint.ts'
import type { Terminal } from '../terminal.ts'

/**
 * Writes an answer as it comes: its words to standard output, its reasoning to standard error. In a pipe the words are
 * passed on as they are; a terminal gets none of a model's control characters.
 */
export async function showAnswer(
  terminal: Terminal,
  pieces: AsyncIterable<AnswerPart>,
  { reasoning, figures }: { reasoning: boolean; figures: boolean },
): Promise<void> {
  const { stdout, stderr, isTerminal } = terminal
  const startedAt = performance.now()
  let begun = false
  /** Where a line was begun and not ended. */
  let open: 'answer' | 'reasoning' | undefined
  let end: Extract<AnswerPart, { kind: 'end' }> | undefined

  const begin = () => {
    if (!begun) terminal.progress('')
    begun = true
  }
  try {
    for await (const piece of pieces) {
      begin()
      if (piece.kind === 'end') end = piece
      else if (piece.kind === 'text') {
        if (open === 'reasoning') stderr.write('\n\n')
        stdout.write(isTerminal ? printable(piece.text) : piece.text)
        open = piece.text.endsWith('\n') ? undefined : 'answer'
      } else if (reasoning) {
        stderr.write(terminal.remarkPaint.faint(printable(piece.text)))
        open = 'reasoning'
      }
    }
  } finally {
    begin()
    // What was cut off in a pipe stays as it is; in a terminal the next words begin on a line of their own.
    if (open === 'reasoning') stderr.write('\n')
    else if (open === 'answer' && (end || isTerminal)) stdout.write('\n')
  }
  if (end?.finishReason === 'length') terminal.remark('The answer was cut at its longest; --max-tokens raises that.')
  if (end && figures) terminal.remark(footer(end.finishReason, end.tokens?.output, performance.now() - startedAt))
}
