import { createParser } from 'eventsource-parser'
import { type Schema, send } from '../../api/client.ts'
import { ApiFailure } from '../../api/failure.ts'
import { logText } from '../../text/log.ts'
import { entryOf, type LogEntry, remark } from './log-entry.ts'

export interface LogQuery {
  model?: string
  source?: 'server' | 'engine'
}

const retryMs = 2_000
const firstLines = 300
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
