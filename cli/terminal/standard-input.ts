import { fstatSync } from 'node:fs'
import { createInterface } from 'node:readline/promises'
import { usageFailure } from './exit-codes.ts'
import { printable } from './styled-line.ts'
import type { Terminal } from './terminal.ts'

/** Maximum bytes: the server's limit for a chat body. */
const maxTextBytes = 32 << 20

/**
 * Whether standard input is a pipe, a socket or a file. A terminal, /dev/null or a closed descriptor provides no input.
 */
export function isPiped(): boolean {
  try {
    const stat = fstatSync(0)
    return stat.isFIFO() || stat.isFile() || stat.isSocket()
  } catch {
    return false
  }
}

/** Reads standard input as text, without the last newline. Throws usage when it is longer than a prompt may be. */
export async function readAll(stream: NodeJS.ReadStream): Promise<string> {
  const bytes = await readBytes(stream, maxTextBytes, () =>
    usageFailure(`Standard input is longer than ${maxTextBytes >> 20} MiB. Send less, or in parts.`),
  )
  // The last newline comes from echo, not from the user.
  return bytes.toString('utf8').replace(/\r?\n$/, '')
}

/** Reads all bytes. Throws `tooLong` when there are more than `maxBytes`. */
export async function readBytes(stream: NodeJS.ReadStream, maxBytes: number, tooLong: () => Error): Promise<Buffer> {
  const pieces: Buffer[] = []
  let size = 0
  for await (const piece of stream) {
    const bytes = Buffer.from(piece as Buffer | string)
    size += bytes.length
    if (size > maxBytes) throw tooLong()
    pieces.push(bytes)
  }
  return Buffer.concat(pieces)
}

/** Delay before the message that the command waits for standard input. Milliseconds. */
const silentMs = 3_000

/** Awaits the reading, and prints a remark after 3 s: another program may hold the pipe open without writing to it. */
export async function announceWait<T>(terminal: Terminal, reading: Promise<T>): Promise<T> {
  const timer = setTimeout(
    () => terminal.remark('Waiting for the end of standard input. To leave it out, add: < /dev/null'),
    silentMs,
  )
  try {
    return await reading
  } finally {
    clearTimeout(timer)
  }
}

/** Reads the non-empty lines of standard input. */
export async function readLines(stream: NodeJS.ReadStream): Promise<string[]> {
  return (await readAll(stream)).split(/\r?\n/).filter(line => line.trim() !== '')
}

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
    const answer = (
      await lines.question(`${printable(question)} ${defaultAnswer ? '[Y/n]' : '[y/N]'} `, { signal })
    ).trim()
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
