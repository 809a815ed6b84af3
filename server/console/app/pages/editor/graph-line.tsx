import { BaseEdge, type Edge, type EdgeProps, getBezierPath } from '@xyflow/react'
import { detourPath } from '../../components/graph/detours.ts'
import type { GraphEdge } from './document/graph.ts'
import { useCards } from './editor-context.ts'

export interface LineData extends Record<string, unknown> {
  edge: GraphEdge
  /** The height at which it passes the cards between its ends. */
  detour: number | undefined
}

/** A line between two cards, which passes other cards above or below them. */
export function GraphLine({ data, style, interactionWidth, ...ends }: EdgeProps<Edge<LineData>>) {
  const isRunning = useCards().runs.get(data?.edge.to ?? '')?.status === 'running'
  const { sourceX, sourceY, targetX, targetY } = ends
  const path =
    data?.detour === undefined
      ? getBezierPath(ends)[0]
      : detourPath({ x: sourceX, y: sourceY }, { x: targetX, y: targetY }, data.detour)
  return (
    <BaseEdge
      id={ends.id}
      path={path}
      style={style}
      interactionWidth={interactionWidth}
      className={isRunning ? 'running-line' : ''}
    />
  )
}
