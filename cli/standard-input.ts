import { fstatSync } from 'node:fs'
import { usage } from './exit-codes.ts'
import type { Terminal } from './terminal.ts'

/** The server's own bound on a chat body; more than this it would refuse anyway. */
const longestText = 32 << 20

/**
 * Whether somebody pipes something in: a pipe, a socket or a file. A terminal is a person who types nothing yet, and
 * /dev/null or a closed descriptor has nothing to say.
 */
export function isPiped(): boolean {
  try {
    const stat = fstatSync(0)
    return stat.isFIFO() || stat.isFile() || stat.isSocket()
  } catch {
    return false
  }
}

/** All of standard input as text, without the newline at its end. Throws usage when it is longer than a prompt may be. */
export async function readAll(stream: NodeJS.ReadStream): Promise<string> {
  const pieces: Buffer[] = []
  let size = 0
  for await (const piece of stream) {
    const bytes = Buffer.from(piece as Buffer | string)
    size += bytes.length
    if (size > longestText)
      throw usage(`Standard input is longer than ${longestText >> 20} MiB. Send less, or in parts.`)
    pieces.push(bytes)
  }
  // A newline at the end comes from echo, not from the question.
  return Buffer.concat(pieces)
    .toString('utf8')
    .replace(/\r?\n$/, '')
}

/** Somebody's program may leave a pipe open that it never writes to; a person who waits for it should know. */
const silentMs = 3_000

/** Does the reading, and remarks on it when it takes longer than a pipe with something in it would. */
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

/** The lines of standard input that are not empty. */
export async function readLines(stream: NodeJS.ReadStream): Promise<string[]> {
  return (await readAll(stream)).split(/\r?\n/).filter(line => line.trim() !== '')
}
