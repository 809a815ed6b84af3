import type { Connection, Edge, FinalConnectionState, OnConnectStartParams, ReactFlowInstance } from '@xyflow/react'
import { type RefObject, useState } from 'react'
import { announce } from '../../components/announcements.tsx'
import { type Drawn, judgeEnd, portOf } from './document/connections.ts'
import type { GraphCard } from './document/graph.ts'
import { idOfCard } from './document/ports.ts'
import { downstreamOf, upstreamOf } from './document/references.ts'
import { useEditor } from './editor-context.ts'

type View = Pick<ReactFlowInstance, 'screenToFlowPosition'>

/**
 * The line that a person draws between two ports, and where it may lead. If it ends on the empty canvas, the drawer of nodes
 * opens with the tasks that fit; if it ends at a port that it does not fit, the reason is announced.
 */
export function useDrawing(cards: readonly GraphCard[], view: RefObject<View | undefined>) {
  const { workflow, readOnly, addNode } = useEditor()
  const [drawn, setDrawn] = useState<Drawn>()
  const find = (key: string, handle: string | null) => {
    const id = idOfCard(key)
    const card = cards.find(one => one.id === id)
    return card && portOf(id, card.ports, handle)
  }
  const lineFrom = (key: string, handle: string | null): Drawn | undefined => {
    const port = find(key, handle)
    return port && { port, blocked: (port.isOutput ? upstreamOf : downstreamOf)(workflow, port.card) }
  }
  return {
    drawn,
    begun: (_: unknown, { nodeId, handleId }: OnConnectStartParams): void => {
      setDrawn(nodeId === null ? undefined : lineFrom(nodeId, handleId))
    },
    mayConnect: ({ source, sourceHandle = null, target, targetHandle = null }: Connection | Edge): boolean => {
      const line = lineFrom(source, sourceHandle)
      const end = find(target, targetHandle)
      return !readOnly && line !== undefined && end !== undefined && judgeEnd(line, end)?.fit !== 'refused'
    },
    ended: (event: MouseEvent | TouchEvent, { isValid, toHandle, toNode }: FinalConnectionState): void => {
      setDrawn(undefined)
      if (!drawn || readOnly || isValid) return
      const end = toHandle && find(toHandle.nodeId, toHandle.id ?? null)
      const why = end && judgeEnd(drawn, end)?.why
      if (why) return announce('bad', why)
      if (toNode || toHandle || !(event.target as Element).classList.contains('react-flow__pane')) return
      const { clientX: x, clientY: y } = 'changedTouches' in event ? event.changedTouches[0]! : event
      const at = view.current?.screenToFlowPosition({ x, y })
      addNode(at && { at, seen: cards, drawn: drawn.port })
    },
  }
}
