import { usageFailure } from '../terminal/exit-codes.ts'
import { announceWait, readAll } from '../terminal/standard-input.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { type AskOptions, askOnce, streamAnswer } from './ask.ts'
import { type ChatSettings, chatRequest } from './conversation.ts'

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
