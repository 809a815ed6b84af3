import { memo, useEffect, useLayoutEffect, useRef, useState } from 'react'
import { ApiFailure, eventsOf, type Schema, send } from '../../api/client.ts'
import { logText } from '../../text/log.ts'
import { Button } from '../button.tsx'
import { SearchField } from '../fields.tsx'
import { Failed } from '../page.tsx'
import { entryOf, type LogEntry, remark } from './log-entry.ts'

/** Lines that are kept; older ones leave. */
const maxLines = 1_000

/** The newest lines of a log, and further ones as they come. It stays at the end unless a person scrolls up. */
export function LogView({ name, model, source }: { name: string } & LogQuery) {
  const [entries, setEntries] = useState<readonly LogEntry[]>([])
  const [held, setHeld] = useState<readonly LogEntry[]>()
  const [filter, setFilter] = useState('')
  const [state, setState] = useState<'live' | 'lost' | Error>('live')
  const list = useRef<HTMLDivElement>(null)
  const isAtEnd = useRef(true)

  useEffect(() => {
    const ended = new AbortController()
    followLog({ model, source }, ended.signal, {
      begin() {
        setState('live')
        setEntries([])
      },
      take: more => setEntries(now => [...now, ...more].slice(-maxLines)),
      lost: () => setState('lost'),
    }).catch((failure: Error) => setState(failure))
    return () => ended.abort()
  }, [model, source])

  const wanted = filter.trim().toLowerCase()
  const shown = (held ?? entries).filter(({ text }) => text.toLowerCase().includes(wanted))
  useLayoutEffect(() => {
    if (isAtEnd.current && list.current) list.current.scrollTop = list.current.scrollHeight
  }, [shown.length, entries])

  if (state instanceof Error) return <Failed failure={state} />
  const since = held ? entries.filter(({ id }) => id > (held.at(-1)?.id ?? -1)).length : 0
  return (
    <div className="space-y-2">
      <div className="flex flex-wrap items-center gap-2">
        <SearchField value={filter} change={setFilter} label={logText.filter} />
        <Button onClick={() => setHeld(held ? undefined : entries)} label={held ? logText.resume : logText.pause} />
      </div>
      <div
        ref={list}
        role="log"
        aria-live="off"
        aria-label={logText.label(name)}
        tabIndex={0}
        onScroll={({ currentTarget: { scrollTop, scrollHeight, clientHeight } }) => {
          isAtEnd.current = scrollTop + clientHeight >= scrollHeight - 8
        }}
        className="bg-raised border-line h-96 overflow-auto rounded-md border p-3 font-mono text-xs"
      >
        {shown.map(entry => (
          <Line key={entry.id} entry={entry} />
        ))}
        {shown.length === 0 && (
          <p className="text-muted font-sans">{entries.length === 0 ? logText.empty : logText.noMatch}</p>
        )}
      </div>
      <p className="text-muted min-h-4 text-xs">
        {state === 'lost' ? logText.reconnecting : held ? logText.paused(since) : ''}
      </p>
    </div>
  )
}

const looks = { debug: 'text-muted', info: '', warn: 'text-warning', error: 'text-bad' }

const Line = memo(function Line({ entry: { time, level, text } }: { entry: LogEntry }) {
  return (
    <div className={`break-words whitespace-pre-wrap ${level ? looks[level] : ''}`}>
      {time !== null && (
        <time dateTime={time} className="text-muted mr-2 select-none">
          {new Date(time).toLocaleTimeString('en', { hourCycle: 'h23' })}
        </time>
      )}
      {level !== null && level !== 'info' && <strong className="mr-2">{level}</strong>}
      {text}
    </div>
  )
})

interface LogQuery {
  model?: string
  source?: 'server' | 'engine'
}

const retryMs = 2_000
const firstLines = 300
/**
 * Follows a log until the signal. `begin` is called with each connection, after which the newest lines come again;
 * `take` with further lines, at most ten times a second. Rejects with ApiFailure if the log may not be read.
 */
async function followLog(
  query: LogQuery,
  signal: AbortSignal,
  { begin, take, lost }: { begin: () => void; take: (entries: LogEntry[]) => void; lost: () => void },
): Promise<void> {
  const wanted = Object.entries({ ...query, follow: 'true', lines: String(firstLines) }).filter(([, value]) => value)
  const search = new URLSearchParams(wanted)
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
      for await (const { event = 'message', data } of eventsOf(response)) {
        const value = JSON.parse(data) as unknown
        if (event === 'message') add(entryOf(value as Schema<'LogLine'>))
        else if (event === 'missed') add(remark(logText.missed((value as { lines: number }).lines)))
      }
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
