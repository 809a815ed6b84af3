import type { Schema } from '../../api/client.ts'
import { Badge, type BadgeKind } from '../../components/badge.tsx'
import { countText } from '../../components/format.ts'
import { batchesText as text } from '../../text/batches.ts'

type Batch = Schema<'Batch'>

const kinds: Readonly<Record<Batch['status'], BadgeKind>> = {
  validating: 'active',
  in_progress: 'active',
  finalizing: 'active',
  cancelling: 'active',
  completed: 'good',
  failed: 'bad',
  expired: 'warning',
  cancelled: 'warning',
}

/** Milliseconds between reads while a batch runs: the counts of its lines have no events. */
export const liveMs = 2_000

/** Whether a batch has not ended. */
export const isLive = ({ status }: Batch): boolean => kinds[status] === 'active'

export const BatchState = ({ batch: { status } }: { batch: Batch }) => (
  <Badge kind={kinds[status]}>{text.states[status]}</Badge>
)

/** How many lines have ended, as a bar and in words. */
export function BatchProgress({ batch: { request_counts: counts } }: { batch: Batch }) {
  const { total, completed, failed } = counts
  if (total === 0) return '–'
  const width = (count: number) => ({ width: `${(100 * count) / total}%` })
  return (
    <span className="inline-flex flex-wrap items-center gap-2 max-md:justify-end">
      <span aria-hidden className="bg-raised flex h-2 w-24 overflow-hidden rounded-full">
        <span className="bg-good" style={width(completed)} />
        <span className="bg-bad" style={width(failed)} />
      </span>
      <span className="tabular-nums">
        {text.progress(countText(completed + failed), countText(total))}
        {failed > 0 && <span className="text-bad"> · {text.failedLines(countText(failed))}</span>}
      </span>
    </span>
  )
}
