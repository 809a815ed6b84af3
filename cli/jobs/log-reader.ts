import { z } from 'zod'
import type { Client } from '../client.ts'
import { jobPath } from './job.ts'

const LogLine = z.looseObject({ timestamp: z.string(), level: z.string(), message: z.string() })
export type LogLine = z.output<typeof LogLine>
const Logs = z.looseObject({ logs: z.array(LogLine) })

/** How long a line waits at most before it is read. Milliseconds. */
const everyMs = 2_000

export const logsOf = async (client: Client, id: string, signal: AbortSignal): Promise<LogLine[]> =>
  (await client.ask({ method: 'GET', path: `${jobPath(id)}/logs`, answer: Logs, signal })).logs

/** The lines of a list that were not in the one before. A server keeps so many lines and no more. */
export function newLines(before: readonly LogLine[], lines: readonly LogLine[]): LogLine[] {
  const last = before.at(-1)
  if (!last) return [...lines]
  const same = (line: LogLine | undefined) => line?.timestamp === last.timestamp && line.message === last.message
  return lines.slice(same(lines[before.length - 1]) ? before.length : lines.findLastIndex(same) + 1)
}

/**
 * Tells what a job says, each line once, while it is followed by somebody else: read every 2 s and when asked to `look`,
 * and once more at the end. A list that could not be read is read the next time.
 */
export function openLogReader(connect: () => Client, id: string, signal: AbortSignal, tell: (line: LogLine) => void) {
  let known: readonly LogLine[] = []
  let reading: Promise<void> | undefined
  const read = async () => {
    const lines = await logsOf(connect(), id, signal)
    for (const line of newLines(known, lines)) tell(line)
    known = lines
  }
  const look = (): void => {
    reading ??= read()
      .catch(() => undefined)
      .finally(() => {
        reading = undefined
      })
  }
  const timer = setInterval(look, everyMs)
  return {
    look,
    async [Symbol.asyncDispose](): Promise<void> {
      clearInterval(timer)
      await reading
      // Whoever followed the job has said by now what is wrong, if anything is.
      if (!signal.aborted) await read().catch(() => undefined)
    },
  }
}
