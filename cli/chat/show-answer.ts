import { usageFailure } from '../terminal/exit-codes.ts'
import { printable } from '../terminal/paint.ts'
import { announceWait, readAll } from '../terminal/standard-input.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { type AnswerPart, type AskOptions, askOnce, streamAnswer } from './ask.ts'
import { type ChatSettings, chatRequest } from './conversation.ts'
import { footer } from './session.ts'

/**
 * Writes a streamed answer: text to standard output, reasoning to standard error. On a terminal control characters are
 * removed; in a pipe the text is unchanged.
 */
export async function showAnswer(
  terminal: Terminal,
  parts: AsyncIterable<AnswerPart>,
  { reasoning, figures }: { reasoning: boolean; figures: boolean },
): Promise<void> {
  const { stdout, stderr, isTerminal } = terminal
  const startedAt = performance.now()
  let begun = false
  /** The output whose last line has no line break yet. */
  let open: 'answer' | 'reasoning' | undefined
  let end: Extract<AnswerPart, { kind: 'end' }> | undefined

  const begin = () => {
    if (!begun) terminal.progress('')
    begun = true
  }
  try {
    for await (const piece of parts) {
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
    // An interrupted answer in a pipe gets no line break; on a terminal the next output begins on a new line.
    if (open === 'reasoning') stderr.write('\n')
    else if (open === 'answer' && (end || isTerminal)) stdout.write('\n')
  }
  if (end?.finishReason === 'length') terminal.remark('The answer reached its maximum length; --max-tokens raises it.')
  if (end && figures) terminal.remark(footer(end.finishReason, end.tokens?.output, performance.now() - startedAt))
}

/** Reads one prompt from standard input and writes the answer to standard output. */
export async function chatInPipe(
  terminal: Terminal,
  options: AskOptions,
  {
    model,
    system,
    settings,
    json,
  }: { model: string; system: string | undefined; settings: ChatSettings; json: boolean },
): Promise<void> {
  const prompt = await announceWait(terminal, readAll(terminal.stdin))
  if (prompt.trim() === '')
    throw usageFailure('Standard input contains no prompt. Write: echo "Hello" | infer chat, or run it in a terminal.')
  const body = chatRequest({ model, system }, [{ role: 'user', content: prompt }], settings)
  const onWait = () => terminal.remark(`Loading ${model}…`)
  if (json) {
    terminal.json(await askOnce(body, { ...options, onWait }))
    return
  }
  let last = '\n'
  for await (const piece of streamAnswer(body, { ...options, onWait })) {
    if (piece.kind === 'text') {
      terminal.stdout.write(piece.text)
      last = piece.text
    } else if (piece.kind === 'end' && piece.finishReason === 'length') {
      terminal.remark('The answer reached its maximum length; --max-tokens raises it.')
    }
  }
  if (!last.endsWith('\n')) terminal.stdout.write('\n')
}
