import { createInterface } from 'node:readline/promises'
import { usage } from './exit-codes.ts'
import type { Terminal } from './terminal.ts'

/** Asks a person who sits in front of the terminal; Enter means `usually`. Rejects when the signal is aborted. */
export async function confirm(
  question: string,
  usually: boolean,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<boolean> {
  const lines = createInterface({ input: terminal.stdin, output: terminal.stderr })
  // In raw mode Ctrl-C is a key like any other.
  lines.on('SIGINT', () => process.kill(process.pid, 'SIGINT'))
  try {
    const answer = (await lines.question(`${question} ${usually ? '[Y/n]' : '[y/N]'} `, { signal })).trim()
    return answer === '' ? usually : /^y(es)?$/i.test(answer)
  } finally {
    lines.close()
  }
}

/**
 * Whether something is to be done that cannot be undone: `yes` where it was said with the command, else a person is
 * asked. Throws usage where nobody is there.
 */
export async function confirmDestructive(
  question: string,
  yes: boolean | undefined,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<boolean> {
  if (yes) return true
  if (!terminal.interactive) throw usage('Nobody is here to be asked. Say that you mean it: --yes')
  return confirm(question, false, terminal, signal)
}
