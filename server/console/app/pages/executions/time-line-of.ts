import type { Schema } from '../../api/schema.ts'

type ExecutionNode = Schema<'ExecutionNode'>

/** When a node ran, in seconds after the first node began. */
interface Bar {
  id: string
  status: ExecutionNode['status']
  /** Undefined: it has not begun. */
  from: number | undefined
  to: number | undefined
}

/** Returns the bars of the time line in the order in which the nodes began, and its length in seconds. `now`: Unix seconds. */
export function timeLineOf(
  nodes: readonly Pick<ExecutionNode, 'node_id' | 'status' | 'started_at_ms' | 'duration_ms'>[],
  now: number,
): { bars: Bar[]; seconds: number } {
  const began = nodes.flatMap(({ started_at_ms: ms }) => (ms === null ? [] : ms / 1_000))
  const start = Math.min(...began)
  const bars = nodes.map(({ node_id, status, started_at_ms, duration_ms }): Bar => {
    if (started_at_ms === null) return { id: node_id, status, from: undefined, to: undefined }
    const startedAt = started_at_ms / 1_000
    const from = startedAt - start
    const lasted = duration_ms === null ? now - startedAt : duration_ms / 1_000
    return { id: node_id, status, from, to: from + Math.max(0, lasted) }
  })
  const last = Math.max(0.01, ...bars.flatMap(({ to }) => to ?? []))
  const order = ({ from }: Bar) => from ?? Number.POSITIVE_INFINITY
  return { bars: bars.toSorted((a, b) => order(a) - order(b) || 0), seconds: last }
}

/** Steps at which the time line has a mark: about five, at round numbers of seconds. */
export function marksOf(seconds: number): number[] {
  const rough = seconds / 5
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = [1, 2, 5, 10].map(factor => factor * power).find(one => one >= rough)!
  return Array.from({ length: Math.floor(seconds / step) + 1 }, (_, at) => Number((at * step).toPrecision(6)))
}
