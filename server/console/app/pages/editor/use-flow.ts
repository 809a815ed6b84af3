import { applyEdgeChanges, type Edge, type EdgeChange, type Node, Position } from '@xyflow/react'
import { useCallback, useDeferredValue, useEffect, useState } from 'react'
import { editorText } from '../../text/editor.ts'
import { parametersId, portPlaces, portSize, sizeOf } from './document/graph.ts'
import { cardKey, idOfCard, type Ports } from './document/ports.ts'
import { useEditor } from './editor-context.ts'
import type { FrameNode } from './frame-card.tsx'
import type { LineData } from './graph-line.tsx'
import type { NodeCardData } from './node-card.tsx'
import type { Graph } from './use-graph.ts'
import { useGrowing } from './use-growing.ts'

export type CardNode = Node<NodeCardData, 'card'>
export type FlowNode = CardNode | FrameNode
export type FlowEdge = Edge<LineData>

const noEdges: never[] = []
/** Of many nodes so many are given to the library in one task. */
const cardsAtOnce = 10

/** The graph as the library takes it. What the library has found out of a node or edge stays when the workflow changes. */
export function useFlow(
  { cards: all, edges: found, detours, expanded, unfold, many }: Graph,
  frames: readonly FrameNode[],
) {
  const { readOnly, selected } = useEditor()
  const [nodes, setNodes] = useState<FlowNode[]>([])
  const [edges, setEdges] = useState<FlowEdge[]>([])
  const cards = useGrowing(all, many ? cardsAtOnce : Number.POSITIVE_INFINITY)
  // The cards are there before their lines.
  const drawn = useDeferredValue(cards.length < all.length || all.length === 0 ? noEdges : found)
  useEffect(() => {
    setNodes(before => {
      const known = new Map(before.map(node => [node.id, node]))
      // Several are selected as long as the one with the properties is among them.
      const chosen = new Set(before.filter(node => node.selected).map(node => idOfCard(node.id)))
      const several = selected !== undefined && chosen.has(selected) ? chosen : new Set([selected])
      const drawnFrames = frames.map(frame => kept<FlowNode>(known.get(frame.id), { ...known.get(frame.id), ...frame }))
      const drawnCards = cards.map(({ id, node, ports, at }): FlowNode => {
        const key = cardKey(id)
        const old = known.get(key) as CardNode | undefined
        const data = { node, ports, expanded, unfold, isOfMany: many }
        return kept<CardNode>(old, {
          ...old,
          id: key,
          type: 'card',
          position: at,
          data: old && sameData(old.data, data) ? old.data : data,
          selected: several.has(id),
          draggable: node !== undefined && !readOnly,
          deletable: node !== undefined && !readOnly,
          ariaLabel: node ? `${editorText.node} ${id}` : editorText.parameters,
          ...(many ? unmeasured(ports, node !== undefined, old?.measured) : {}),
        })
      })
      return [...drawnFrames, ...drawnCards]
    })
  }, [cards, frames, expanded, unfold, selected, readOnly, many])
  useEffect(() => {
    setEdges(before => {
      const known = new Map(before.map(edge => [edge.id, edge]))
      return drawn.map(edge =>
        kept(known.get(edge.id), {
          id: edge.id,
          type: 'line',
          source: cardKey(edge.from),
          sourceHandle: edge.fromPort,
          target: cardKey(edge.to),
          targetHandle: edge.toPort,
          data: keptLine(known.get(edge.id)?.data, { edge, detour: detours.get(edge.id) }),
          selected: known.get(edge.id)?.selected ?? false,
          deletable: !readOnly,
          interactionWidth: 16,
          ...(edge.link ? {} : { style: orderStyle }),
          ariaLabel: (edge.link ? editorText.edgeOf : editorText.edgeOrder)(
            edge.from === parametersId ? editorText.parameters : edge.from,
            edge.to,
          ),
        }),
      )
    })
  }, [drawn, detours, readOnly])
  const selectEdges = useCallback((changes: EdgeChange<FlowEdge>[]) => {
    const selections = changes.filter(({ type }) => type === 'select')
    setEdges(now => applyEdgeChanges(selections, now))
  }, [])
  return { nodes, setNodes, edges, selectEdges }
}

const orderStyle = { strokeDasharray: '6 4' }

/** The object from before if it says the same: the library looks again at each other one. */
function kept<Part extends object>(before: Part | undefined, next: Part): Part {
  const isSame =
    before !== undefined && Object.entries(next).every(([name, value]) => isEqual(before[name as keyof Part], value))
  return isSame ? before : next
}

/** The same value, or the same place or size. */
function isEqual(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true
  const [one, other] = [a, b] as (Partial<Record<'x' | 'y' | 'width' | 'height', number>> | undefined)[]
  if (typeof one?.x === 'number') return one.x === other?.x && one.y === other.y
  return typeof one?.width === 'number' && one.width === other?.width && one.height === other.height
}

const keptLine = (before: LineData | undefined, next: LineData): LineData =>
  before?.detour === next.detour && before?.edge.link?.source === next.edge.link?.source ? (before ?? next) : next

/** What the library measures of a card that is drawn, by its ports. */
const sizes = new WeakMap<Ports, Required<Pick<CardNode, 'measured' | 'handles'>>>()

/** The size and ports of a card that was not drawn yet, so that only cards in view need to be. */
function unmeasured(ports: Ports, isNode: boolean, before: CardNode['measured']): Partial<CardNode> {
  let known = sizes.get(ports)
  if (!known) sizes.set(ports, (known = expected(ports, isNode)))
  return { measured: before ?? known.measured, handles: known.handles }
}

function expected(ports: Ports, isNode: boolean): Required<Pick<CardNode, 'measured' | 'handles'>> {
  const { width, height } = sizeOf(ports)
  return {
    measured: { width, height },
    handles: portPlaces(ports, isNode).map(({ id, y, isOutput }) => ({
      id,
      type: isOutput ? 'source' : 'target',
      position: isOutput ? Position.Right : Position.Left,
      x: (isOutput ? width : 0) - portSize / 2,
      y: y - portSize / 2,
      width: portSize,
      height: portSize,
    })),
  }
}

const sameData = (a: NodeCardData, b: NodeCardData): boolean =>
  a.node === b.node &&
  a.expanded === b.expanded &&
  (a.ports === b.ports || JSON.stringify(a.ports) === JSON.stringify(b.ports))
