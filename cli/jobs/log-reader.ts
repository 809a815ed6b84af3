import { z } from 'zod'
import type { Client } from '../client/client.ts'
import { jobPath } from './job.ts'

const LogLine = z.looseObject({ timestamp: z.string(), level: z.string(), message: z.string() })
export type LogLine = z.output<typeof LogLine>
const Logs = z.looseObject({ logs: z.array(LogLine) })

/** Interval of reading the log. Milliseconds. */
const everyMs = 2_000

export const logsOf = async (client: Client, id: string, signal: AbortSignal): Promise<LogLine[]> =>
  (await client.ask({ method: 'GET', path: `${jobPath(id)}/logs`, answer: Logs, signal })).logs

/** Returns the lines that were not in the previous list. The server keeps a limited number of lines. */
function newLines(before: readonly LogLine[], lines: readonly LogLine[]): LogLine[] {
  const last = before.at(-1)
  if (!last) return [...lines]
  const same = (line: LogLine | undefined) => line?.timestamp === last.timestamp && line.message === last.message
  return lines.slice(same(lines[before.length - 1]) ? before.length : lines.findLastIndex(same) + 1)
}

/**
 * Reports each log line of a job once: reads the log every 2 s, when `readNow` is called, and once more at the end. The
 * caller follows the job itself. A failed read is repeated at the next interval.
 */
export function openLogReader(connect: () => Client, id: string, signal: AbortSignal, onLine: (line: LogLine) => void) {
  let known: readonly LogLine[] = []
  let reading: Promise<void> | undefined
  const read = async () => {
    const lines = await logsOf(connect(), id, signal)
    for (const line of newLines(known, lines)) onLine(line)
    known = lines
  }
  const readNow = (): void => {
    reading ??= read()
      .catch(() => undefined)
      .finally(() => {
        reading = undefined
      })
  }
  const timer = setInterval(readNow, everyMs)
  return {
    readNow,
    async [Symbol.asyncDispose](): Promise<void> {
      clearInterval(timer)
      await reading
      // The code that follows the job reports any error.
      if (!signal.aborted) await read().catch(() => undefined)
    },
  }
}
