import { fstatSync } from 'node:fs'
import { usageFailure } from './exit-codes.ts'
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
  const pieces: Buffer[] = []
  let size = 0
  for await (const piece of stream) {
    const bytes = Buffer.from(piece as Buffer | string)
    size += bytes.length
    if (size > maxTextBytes)
      throw usageFailure(`Standard input is longer than ${maxTextBytes >> 20} MiB. Send less, or in parts.`)
    pieces.push(bytes)
  }
  // The last newline comes from echo, not from the user.
  return Buffer.concat(pieces)
    .toString('utf8')
    .replace(/\r?\n$/, '')
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
