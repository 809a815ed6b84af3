import { createInterface } from 'node:readline/promises'
import type { Terminal } from './terminal.ts'

/** Asks a person who sits in front of the terminal; Enter means `usually`. Rejects when the signal is aborted. */
export async function agrees(
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
