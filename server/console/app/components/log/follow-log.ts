import { createParser } from 'eventsource-parser'
import { type Schema, send } from '../../api/client.ts'
import { ApiFailure } from '../../api/failure.ts'
import { logText } from '../../text/log.ts'

export interface LogEntry {
  id: number
  /** ISO 8601; null for a remark of the console. */
  time: string | null
  level: Schema<'LogLine'>['level']
  text: string
}

export interface LogQuery {
  model?: string
  source?: 'server' | 'engine'
}

const retryMs = 2_000
const firstLines = 300
let nextId = 0

// Engines colour their output, and a terminal's control characters have no meaning here.
// oxlint-disable-next-line no-control-regex
const control = /\u001B\[[0-9;?]*[ -/]*[@-~]|[\u0000-\u0008\u000B-\u001F\u007F]/g

type Line = Pick<Schema<'LogLine'>, 'level' | 'message' | 'fields'>

/** Reads a line that an engine printed as JSON with a `message`, as infer's own engines do. */
function structured(line: Line): Line {
  if (!line.message.startsWith('{"')) return line
  try {
    const { message, level = null, time: _, ...fields } = JSON.parse(line.message) as Record<string, unknown>
    return typeof message === 'string' ? { message, level: levels.find(one => one === level) ?? null, fields } : line
  } catch {
    return line
  }
}
const levels = ['debug', 'info', 'warn', 'error'] as const

/** Returns a line of a log as text: the message, then the further fields. */
export function entryOf({ time, source, ...line }: Schema<'LogLine'>): LogEntry {
  const { level, message, fields } = source === 'engine' ? structured(line) : line
  const more = Object.entries(fields).map(
    ([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
  )
  return { id: nextId++, time, level, text: [message, ...more].join('  ').replace(control, '') }
}

const remark = (text: string): LogEntry => ({ id: nextId++, time: null, level: 'warn', text })

/**
 * Follows a log until the signal. `begin` is called with each connection, after which the newest lines come again;
 * `take` with further lines, at most ten times a second. Rejects with ApiFailure if the log may not be read.
 */
export async function followLog(
  query: LogQuery,
  signal: AbortSignal,
  { begin, take, lost }: { begin: () => void; take: (entries: LogEntry[]) => void; lost: () => void },
): Promise<void> {
  const search = new URLSearchParams({ ...query, follow: 'true', lines: String(firstLines) })
  while (!signal.aborted) {
    let batch: LogEntry[] = []
    let timer: ReturnType<typeof setTimeout> | undefined
    const add = (entry: LogEntry) => {
      batch.push(entry)
      timer ??= setTimeout(() => {
        timer = undefined
        take(batch)
        batch = []
      }, 100)
    }
    try {
      const response = await send(`/api/system/logs?${search.toString()}`, { signal })
      begin()
      const parser = createParser({
        onEvent({ event, data }) {
          const value = JSON.parse(data) as unknown
          if (event === undefined || event === 'message') add(entryOf(value as Schema<'LogLine'>))
          else if (event === 'missed') add(remark(logText.missed((value as { lines: number }).lines)))
        },
      })
      for await (const text of response.body!.pipeThrough(new TextDecoderStream())) parser.feed(text)
    } catch (thrown) {
      if (!signal.aborted && thrown instanceof ApiFailure && thrown.status >= 400 && thrown.status < 500) throw thrown
    } finally {
      clearTimeout(timer)
      if (batch.length > 0 && !signal.aborted) take(batch)
    }
    if (signal.aborted) return
    lost()
    await new Promise(resolve => setTimeout(resolve, retryMs))
  }
}
