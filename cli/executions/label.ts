import type { JobSnapshot } from '../jobs/job-snapshot.ts'
import { percentOf } from '../jobs/progress-line.ts'
import { printable } from '../terminal/paint.ts'
import { lengthText, tookText } from '../terminal/quantities-text.ts'
import type { Span } from '../terminal/styled-line.ts'
import type { Label } from '../workflows/draw.ts'
import type { ExecutionSnapshot, NodeSnapshot } from './execution-snapshot.ts'

const signs: Record<string, [sign: string, style: NonNullable<Span['look']>]> = {
  pending: ['○', 'faint'],
  ready: ['◌', 'name'],
  running: ['●', 'warning'],
  completed: ['✓', 'good'],
  failed: ['✗', 'bad'],
  timed_out: ['✗', 'bad'],
  skipped: ['–', 'faint'],
  cancelled: ['–', 'faint'],
}
const signOf = (status: string) => signs[status] ?? signs.pending!

/** Minimum columns of the state, so that a box does not change its width when its node runs. */
const stateWidth = 11

/** Returns the state of a node, short enough for its box. */
export function stateText(snapshot: NodeSnapshot | undefined, now: number): string {
  if (!snapshot) return ''
  const { status, progress, queuePosition, since, until, durationMs, cached } = snapshot
  if (status === 'pending') return ''
  if (status === 'ready') return queuePosition === null || queuePosition === 0 ? 'waiting' : `${queuePosition} ahead`
  if (status === 'running')
    return progress === null || progress === 0 ? lengthText((now - (since ?? now)) / 1000) : `${percentOf(progress)} %`
  if (status === 'completed')
    return cached ? 'cached' : tookText(durationMs ?? (since === null || until === null ? 0 : until - since))
  return status.replace('_', ' ')
}

/** Returns the text in the box of a node, or of several nodes that share one. */
export function labelOf(nodes: readonly string[], run: ExecutionSnapshot, now: number): Label {
  const [first] = nodes
  if (nodes.length === 1) {
    const snapshot = run.nodes.get(first!)
    const [sign, look] = signOf(snapshot?.status ?? 'pending')
    return { lines: [`${sign} ${printable(first!)}`, stateText(snapshot, now).padEnd(stateWidth)], look }
  }
  const counts = new Map<string, number>()
  for (const node of nodes) {
    const [sign] = signOf(run.nodes.get(node)?.status ?? 'pending')
    counts.set(sign, (counts.get(sign) ?? 0) + 1)
  }
  const summary = [...counts].map(([sign, count]) => `${sign} ${count}`).join(' ')
  return { lines: [`${nodes.length} more`, summary.padEnd(stateWidth)] }
}

/** Converts a node's snapshot to that of a job, because both are shown in the same lines. */
export const asJob = (snapshot: NodeSnapshot): JobSnapshot => ({
  ...snapshot,
  status: snapshot.status === 'ready' ? 'pending' : snapshot.status === 'running' ? 'processing' : snapshot.status,
})
