import type { WriteStream } from 'node:tty'
import type { Graph } from '../../core/workflows/graph.ts'
import { storedSentence } from '../client/refusal.ts'
import { percentOf, pipeLine, progressLine, type ReportedProgress } from '../jobs/display.ts'
import type { JobSnapshot } from '../jobs/follow.ts'
import { lengthText, tookText } from '../terminal/quantities-text.ts'
import { drawLine, printable, type Span } from '../terminal/styled-line.ts'
import { openLiveLines } from '../terminal/table.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { drawGraph, type Label } from '../workflows/draw.ts'
import { isOver } from './execution.ts'
import { type ExecutionSnapshot, type NodeSnapshot, unknownExecution } from './follow.ts'

/** Maximum lines below the graph, one per waiting or running node. */
const maxLines = 6

/**
 * Shows the progress of an execution on standard error. On a terminal redraws the graph in place, with a line below it
 * for each waiting or running node; in a pipe prints one line per change. With `quiet` prints only the texts given to
 * `say`.
 */
export function openRunDisplay(
  terminal: Terminal,
  {
    title,
    graph,
    quiet = false,
    agoMs = 0,
    now = () => performance.now(),
  }: {
    title: string
    graph: Graph
    quiet?: boolean
    /** How long the execution has been running already. */
    agoMs?: number
    now?: () => number
  },
) {
  const { stderr, remarkPaint: paint } = terminal
  const isLive = !quiet && Boolean((stderr as Partial<WriteStream>).isTTY)
  const begunAt = now() - agoMs
  const reportedNodes = new Map<string, ReportedProgress>()
  let run: ExecutionSnapshot = unknownExecution
  let closed = false
  const redrawn = isLive ? openLiveLines(stderr, frame, now) : undefined

  function frame(): string[] {
    if (run.nodes.size === 0) return []
    const width = Math.max(20, (stderr.columns || 80) - 1)
    const height = Math.max(6, (stderr.rows || 24) - 1)
    const nodes = [...run.nodes]
    const live = nodes.filter(([, { status }]) => ['running', 'ready', 'waiting'].includes(status))
    const done = nodes.filter(([, { status }]) => isOver(status)).length
    const head = `${printable(title)}  ${done} of ${graph.nodes.length}  ${lengthText((now() - begunAt) / 1000)}`
    const lines = detailLines(live, width)
    const size = { width, height: height - lines.length - 1 }
    const drawing = {
      graph,
      label: (nodes: readonly string[]) => labelOf(nodes, run, now()),
      live: new Set(live.map(([node]) => node)),
    }
    const drawn = drawGraph(drawing, size).map(line => drawLine(line, width, paint))
    return [paint.strong(head), ...drawn, ...lines]
  }

  /** One line per waiting or running node. The graph shows the state of the others. */
  function detailLines(live: [node: string, NodeSnapshot][], width: number): string[] {
    const shown = live.slice(0, live.length > maxLines ? maxLines - 1 : maxLines)
    const widest = Math.max(0, ...shown.map(([node]) => printable(node).length))
    const lines = shown.map(([node, snapshot]) =>
      progressLine(printable(node).padEnd(widest), asJob(snapshot), 0, now() - (snapshot.since ?? now()), width),
    )
    return live.length > shown.length
      ? [...lines, paint.faint(`${live.length - shown.length} more waiting or running`)]
      : lines
  }

  /** In a pipe: prints what changed about each node since its last line. */
  function reportChanges(): void {
    for (const [node, snapshot] of run.nodes) {
      if (snapshot.status === 'pending') continue
      const line = pipeLine(asJob(snapshot), reportedNodes.get(node), now())
      if (!line) continue
      reportedNodes.set(node, line.reported)
      const error = snapshot.error ? `: ${storedSentence(snapshot.error)}` : ''
      const state = snapshot.status === 'completed' ? `, ${stateText(snapshot, now())}` : error
      terminal.remark(`${printable(node)}: ${line.text}${state}`)
    }
  }

  return {
    change(snapshot: ExecutionSnapshot): void {
      run = snapshot
      if (closed) return
      if (redrawn) redrawn.scheduleDraw()
      else if (!quiet) reportChanges()
    },
    say(text: string): void {
      if (redrawn && !closed) redrawn.aside(() => terminal.remark(text))
      else terminal.remark(text)
    },
    /** Leaves the last drawing on the terminal. */
    close(): void {
      if (!closed) redrawn?.close({ keep: true })
      closed = true
    },
  }
}
export type RunDisplay = ReturnType<typeof openRunDisplay>

const signs: Record<string, [sign: string, style: NonNullable<Span['look']>]> = {
  pending: ['○', 'faint'],
  ready: ['◌', 'name'],
  running: ['●', 'warning'],
  waiting: ['◔', 'name'],
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
  const { status, progress, queuePosition, since, until, durationMs, cached, pinned, items } = snapshot
  if (status === 'pending') return ''
  if (status === 'ready') return queuePosition === null || queuePosition === 0 ? 'waiting' : `${queuePosition} ahead`
  if (status === 'running' && items) return `${items.completed + items.failed} of ${items.total}`
  if (status === 'running')
    return progress === null || progress === 0 ? lengthText((now - (since ?? now)) / 1000) : `${percentOf(progress)} %`
  if (status === 'completed')
    return pinned
      ? 'pinned'
      : cached
        ? 'cached'
        : tookText(durationMs ?? (since === null || until === null ? 0 : until - since))
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

/** The states of a job by those of its node, where they differ. */
const jobStatuses: Partial<Record<string, string>> = { ready: 'pending', waiting: 'pending', running: 'processing' }

/** Converts a node's snapshot to that of a job, because both are shown in the same lines. */
export const asJob = (snapshot: NodeSnapshot): JobSnapshot => ({
  ...snapshot,
  status: jobStatuses[snapshot.status] ?? snapshot.status,
})
