import { useEffect, useState } from 'react'
import { hasEnded } from '../../api/client.ts'
import { durationText } from '../../components/format.ts'
import { executionsText as text } from '../../text/executions.ts'
import { marksOf, timeLineOf } from './time-line-of.ts'
import { type Execution, type ExecutionNode } from './use-execution.ts'

const colours: Readonly<Record<string, string>> = {
  running: 'bg-accent',
  waiting: 'bg-accent',
  completed: 'bg-good',
  failed: 'bg-bad',
  timed_out: 'bg-bad',
  cancelled: 'bg-warning',
}

interface TimeLineProps {
  execution: Execution
  nodes: readonly ExecutionNode[]
  show: (id: string) => void
  className?: string
}

/** When each node ran, one line for each. */
export function TimeLine({
  execution,
  nodes,
  show,
  className = 'bg-surface border-line overflow-x-auto rounded-lg border p-3',
}: TimeLineProps) {
  const [now, setNow] = useState(() => Date.now() / 1_000)
  const ended = hasEnded(execution)
  useEffect(() => {
    if (ended) return
    const timer = setInterval(() => setNow(Date.now() / 1_000), 1_000)
    return () => clearInterval(timer)
  }, [ended])
  const { bars, seconds } = timeLineOf(nodes, now)
  const share = (at: number) => `${(100 * at) / seconds}%`
  return (
    <figure aria-label={text.timeline} className={className}>
      <div className="min-w-[30rem]">
        <div aria-hidden className="text-muted relative mb-1 ml-40 h-4 text-xs">
          {marksOf(seconds).map(mark => (
            <span
              key={mark}
              // The last one may not stand out at the right.
              className={`absolute whitespace-nowrap ${mark > 0.9 * seconds ? '-translate-x-full' : ''}`}
              style={{ left: share(mark) }}
            >
              {durationText(mark * 1_000)}
            </span>
          ))}
        </div>
        <ul className="space-y-1">
          {bars.map(({ id, status, from, to }) => (
            <li key={id} className="flex items-center gap-2">
              <button
                type="button"
                onClick={() => show(id)}
                aria-label={text.showNode(id)}
                title={id}
                className="w-38 shrink-0 truncate text-left text-xs hover:underline"
              >
                {id}
              </button>
              <span className="bg-raised relative h-5 flex-1 rounded">
                {from === undefined || to === undefined ? (
                  <span className="text-muted px-2 text-xs">{text.notStarted}</span>
                ) : (
                  <span
                    role="img"
                    aria-label={text.bar(id, durationText(from * 1_000), durationText((to - from) * 1_000))}
                    title={text.bar(id, durationText(from * 1_000), durationText((to - from) * 1_000))}
                    className={`absolute inset-y-0 min-w-1 rounded ${colours[status] ?? 'bg-control'}`}
                    style={{ left: share(from), width: share(to - from) }}
                  />
                )}
              </span>
            </li>
          ))}
        </ul>
      </div>
    </figure>
  )
}
