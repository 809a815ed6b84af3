import { createInterface } from 'node:readline/promises'
import { usageFailure } from './exit-codes.ts'
import type { Terminal } from './terminal.ts'

/** Asks the user at the terminal a question; Enter means `defaultAnswer`. Rejects when the signal is aborted. */
export async function confirm(
  question: string,
  defaultAnswer: boolean,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<boolean> {
  const lines = createInterface({ input: terminal.stdin, output: terminal.stderr })
  // In raw mode the terminal does not turn Ctrl-C into a signal.
  lines.on('SIGINT', () => process.kill(process.pid, 'SIGINT'))
  try {
    const answer = (await lines.question(`${question} ${defaultAnswer ? '[Y/n]' : '[y/N]'} `, { signal })).trim()
    return answer === '' ? defaultAnswer : /^y(es)?$/i.test(answer)
  } finally {
    lines.close()
  }
}

/**
 * Confirms an action that cannot be undone: returns true if `yes` is set, else asks the user. Throws usage without a
 * terminal.
 */
export async function confirmDestructive(
  question: string,
  yes: boolean | undefined,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<boolean> {
  if (yes) return true
  if (!terminal.interactive)
    throw usageFailure('This command asks for confirmation, which needs a terminal. Add --yes to confirm.')
  return confirm(question, false, terminal, signal)
}
