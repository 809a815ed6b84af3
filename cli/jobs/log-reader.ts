import { type Api, type Client, memberOf } from '../client/client.ts'
import { type Paint, printable } from '../terminal/styled-line.ts'

export type LogLine = Api['JobLogs']['logs'][number]

/** Interval of reading the log. Milliseconds. */
const everyMs = 2_000

export const logsOf = ({ api }: Client, id: string, signal: AbortSignal): Promise<LogLine[]> =>
  memberOf(api.GET('/api/jobs/{id}/logs', { params: { path: { id } }, signal }), 'logs')

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

const levels: Record<string, keyof Paint> = { ERROR: 'bad', WARN: 'warning', STDERR: 'warning' }

/** Formats a log line: `12:00:00 INFO step 12/30`, the time in UTC. */
export function lineText({ timestamp, level, message }: LogLine, paint: Paint): string {
  const time = /T(\d{2}:\d{2}:\d{2})/.exec(timestamp)?.[1] ?? printable(timestamp)
  return `${paint.faint(time)} ${paint[levels[level] ?? 'faint'](printable(level).padEnd(6))} ${printable(message)}`
}
