import {
  applyEdgeChanges,
  applyNodeChanges,
  Background,
  type Connection,
  ControlButton,
  Controls,
  type Edge,
  type EdgeChange,
  MiniMap,
  type Node,
  type NodeChange,
  Position,
  ReactFlow,
  type ReactFlowInstance,
} from '@xyflow/react'
import { Maximize } from 'lucide-react'
import {
  type DragEvent,
  type MouseEvent,
  memo,
  useCallback,
  useDeferredValue,
  useEffect,
  useEffectEvent,
  useMemo,
  useRef,
  useState,
} from 'react'
import { isTask, kindOfTask } from '../../components/colours.ts'
import { usePlaces } from '../../components/graph/use-places.ts'
import { editorText } from '../../text/editor.ts'
import { type Edit, moveNode, removeNodes, together } from './document/edits.ts'
import {
  detoursOf,
  editOfConnection,
  editOfCut,
  graphOf,
  newNode,
  parametersId,
  placedCards,
  portPlaces,
  portSize,
  sizeOf,
} from './document/graph.ts'
import { cardKey, idOfCard, type Ports } from './document/ports.ts'
import { viewOf } from './document/view.ts'
import { taskDragType } from './drawer.tsx'
import { useEditor } from './editor-context.ts'
import { freeSpace } from './free-space.ts'
import { GraphLine, type LineData } from './graph-line.tsx'
import { EmptyGraph } from './list-view.tsx'
import { NodeCard, type NodeCardData } from './node-card.tsx'
import { DrawnContext } from './port.tsx'
import { isGraphFocused, useClipboard } from './use-clipboard.ts'
import { useDrawing } from './use-drawing.ts'
import { useGrowing } from './use-growing.ts'

type FlowNode = Node<NodeCardData>
type FlowEdge = Edge<LineData>

const nodeTypes = { card: NodeCard }
const edgeTypes = { line: GraphLine }
const noCards: never[] = []
const noEdges: never[] = []
/** Of many nodes so many are given to the library in one task. */
const cardsAtOnce = 20
const proOptions = { hideAttribution: true }
/** At first texts can be read, even if not all nodes are in view; the button shows all. */
const fitOptions = { minZoom: 0.55, maxZoom: 1 }
const fitAllOptions = { minZoom: 0.1, maxZoom: 1 }
/** Above this number of nodes an overview stands beside the graph. */
const manyForOverview = 8
/** Above this number of nodes only what is in view is drawn. */
const manyNodes = 60
/** The smallest zoom then: the overview beside it shows the whole. */
const manyMinZoom = 0.3

/** The cards and edges of the workflow with their places; people unfold the ports of a card. */
function useGraph() {
  const { workflow: newest, tasks, nested, runs } = useEditor()
  // What a person types in is drawn first.
  const workflow = useDeferredValue(newest)
  const [expanded, setExpanded] = useState<ReadonlySet<string>>(new Set())
  const unfold = useCallback(
    (key: string) => setExpanded(now => new Set(now.has(key) ? [...now].filter(one => one !== key) : [...now, key])),
    [],
  )
  const ran = runs.size > 0
  const { cards, edges } = useMemo(
    () => graphOf(workflow, tasks, expanded, ran, nested),
    [workflow, tasks, expanded, ran, nested],
  )
  const arranged = workflow.nodes.some(({ position }) => !position)
  const places = usePlaces(arranged ? cards : noCards, edges)
  const placed = useMemo(() => placedCards(cards, places), [cards, places])
  const detours = useMemo(() => detoursOf(placed, edges), [placed, edges])
  return {
    cards: placed,
    edges,
    detours,
    expanded,
    unfold,
    arranged,
    isEmpty: cards.length === 0,
    many: cards.length > manyNodes,
  }
}
type Graph = ReturnType<typeof useGraph>

/** The graph as the library takes it. What the library has found out of a node or edge stays when the workflow changes. */
function useFlow({ cards: all, edges: found, detours, expanded, unfold, many }: Graph) {
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
      return cards.map(({ id, node, ports, at }) => {
        const key = cardKey(id)
        const old = known.get(key)
        const data = { node, ports, expanded, unfold, isOfMany: many }
        return kept(old, {
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
    })
  }, [cards, expanded, unfold, selected, readOnly, many])
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

/**
 * The library's view, which follows when nodes are added, arranged or show all results, not when a person moves one. It
 * shows the whole graph when a person has it arranged.
 */
function useView({ cards, arranged }: Graph) {
  const { runs, arrangements } = useEditor()
  const shown = useRef(arrangements)
  const view = useRef<ReactFlowInstance<FlowNode, FlowEdge>>(undefined)
  const ran = runs.size > 0
  const ended = ran && [...runs.values()].every(({ finished_at: at, status }) => at !== null || status === 'skipped')
  const showGraph = useEffectEvent(() => {
    // A large graph has no places for a moment.
    if (!view.current || cards.length === 0) return
    const isWhole = shown.current !== arrangements
    shown.current = arrangements
    show(view.current, cards, isWhole ? fitAllOptions : fitOptions)
  })
  const wasEmpty = useRef(true)
  useEffect(() => {
    // Before the library has the cards of a large graph: it draws those in view, and would draw others first.
    if (wasEmpty.current) showGraph()
    wasEmpty.current = cards.length === 0
    const timer = setTimeout(() => showGraph(), 50)
    return () => clearTimeout(timer)
  }, [cards.length, arranged, arrangements, ran, ended])
  return view
}

/**
 * The workflow as a graph: nodes are moved, connected and removed by mouse and keyboard. Problems change only the cards, so
 * it is not drawn again for them.
 */
export const GraphView = memo(function GraphView() {
  const { workflow, tasks, apply, readOnly, selected, select, addNode } = useEditor()
  const graph = useGraph()
  const { cards, isEmpty, many } = graph
  const { nodes, setNodes, edges, selectEdges } = useFlow(graph)
  const view = useView(graph)
  useClipboard(useMemo(() => new Set(nodes.filter(node => node.selected).map(node => idOfCard(node.id))), [nodes]))

  const changeNodes = useCallback(
    (changes: NodeChange<FlowNode>[]) => {
      setNodes(now => applyNodeChanges(changes, now))
      const chosen = changes.find(change => change.type === 'select' && change.selected)
      if (chosen && 'id' in chosen) {
        const id = idOfCard(chosen.id)
        select(id === parametersId ? undefined : id)
      }
      const moves = changes.flatMap(change => {
        if (change.type !== 'position' || change.dragging !== false || !change.position) return []
        const id = idOfCard(change.id)
        const card = cards.find(one => one.id === id)
        const { x, y } = change.position
        const moved = card?.node && (Math.round(x) !== card.at.x || Math.round(y) !== card.at.y)
        return moved ? [moveNode(id, x, y)] : []
      })
      if (moves.length === 0) return
      // Moving one node keeps the others where they are seen.
      const others = cards.flatMap(({ node, at }) => (node && !node.position ? [moveNode(node.id, at.x, at.y)] : []))
      apply(together(...others, ...moves), 'move')
    },
    [cards, setNodes, apply, select],
  )
  const joined = ({ source, sourceHandle, target, targetHandle }: Connection) => {
    const edit = editOfConnection(idOfCard(source), sourceHandle, idOfCard(target), targetHandle)
    if (edit) apply(edit)
  }
  const drawing = useDrawing(cards, view)
  // It has a mark for each card, so it comes after those in view.
  const hasOverview = useDeferredValue(nodes.length > manyForOverview, false)
  const deleted = ({ nodes: gone, edges: cut }: { nodes: FlowNode[]; edges: FlowEdge[] }) => {
    const ids = gone.map(({ id }) => idOfCard(id)).filter(id => id !== parametersId)
    const edits: Edit[] = cut
      .filter(({ data }) => !ids.includes(data!.edge.from) && !ids.includes(data!.edge.to))
      .map(({ data }) => editOfCut(data!.edge))
    if (ids.length > 0) edits.push(removeNodes(ids))
    if (edits.length > 0) apply(together(...edits))
    if (selected !== undefined && ids.includes(selected)) select(undefined)
  }
  const pressedTwice = (event: MouseEvent) => {
    if (readOnly || !(event.target as Element).classList.contains('react-flow__pane')) return
    const at = view.current?.screenToFlowPosition({ x: event.clientX, y: event.clientY })
    addNode(at && { at, seen: cards })
  }
  const dropped = (event: DragEvent) => {
    const task = tasks.get(event.dataTransfer.getData(taskDragType))
    if (!task) return
    event.preventDefault()
    // The first node is alone and has no place yet.
    const at = (isEmpty ? undefined : view.current)?.screenToFlowPosition({ x: event.clientX, y: event.clientY })
    const { id, edit } = newNode(task, workflow.nodes, at && { at, seen: cards })
    apply(edit)
    select(id)
  }
  const dropping = readOnly ? {} : { onDragOver: allowTask, onDrop: dropped }

  if (isEmpty)
    return (
      <div
        className="flex min-h-[28rem] flex-1 flex-col justify-center p-4 lg:pr-[calc(var(--details)+2rem)]"
        {...dropping}
      >
        <EmptyGraph />
      </div>
    )
  return (
    <div className="h-[28rem] overflow-hidden lg:h-auto lg:min-h-0 lg:flex-1" {...dropping}>
      <DrawnContext value={drawing.drawn}>
        <ReactFlow<FlowNode, FlowEdge>
          aria-label={editorText.graphLabel}
          className="[&_.react-flow\_\_node:focus-within]:z-10! [&_.react-flow\_\_node:hover]:z-10! [--xy-controls-button-background-color-hover:var(--color-raised)] [--xy-controls-button-border-color:var(--color-line)] [--xy-controls-button-color-hover:var(--color-text)]"
          nodes={nodes}
          edges={edges}
          nodeTypes={nodeTypes}
          edgeTypes={edgeTypes}
          onInit={instance => {
            view.current = instance
            // On a busy machine it comes after the moment at which the graph would be shown.
            if (cards.length > 0) show(instance, cards, fitOptions)
          }}
          onNodesChange={changeNodes}
          onEdgesChange={selectEdges}
          onConnect={joined}
          onConnectStart={drawing.begun}
          onConnectEnd={drawing.ended}
          onDelete={deleted}
          // The run may be beside the graph, and the node selected.
          onNodeClick={(_, { id }) => select(idOfCard(id) === parametersId ? undefined : idOfCard(id))}
          onPaneClick={() => select(undefined)}
          isValidConnection={drawing.mayConnect}
          zoomOnDoubleClick={false}
          onDoubleClick={pressedTwice}
          nodesConnectable={!readOnly}
          deleteKeyCode={readOnly ? null : ['Delete', 'Backspace']}
          // The library listens to the keys of the whole page.
          onBeforeDelete={mayDelete}
          // The library would take the space bar from everything on the page that is not a button.
          panActivationKeyCode={null}
          onlyRenderVisibleElements={many}
          proOptions={proOptions}
          minZoom={many ? manyMinZoom : 0.1}
        >
          <Background />
          <Controls showInteractive={false} showFitView={false} className="lg:mb-[calc(var(--run)+1rem)]!">
            <ControlButton
              aria-label={editorText.wholeGraph}
              title={editorText.wholeGraph}
              onClick={() => view.current && show(view.current, cards, fitAllOptions)}
            >
              <Maximize aria-hidden />
            </ControlButton>
          </Controls>
          {hasOverview && (
            <MiniMap
              pannable
              zoomable
              position="bottom-left"
              ariaLabel={editorText.overview}
              className="ml-14! max-md:hidden lg:mb-[calc(var(--run)+1rem)]!"
              bgColor="var(--color-surface)"
              maskColor="color-mix(in srgb, var(--color-raised) 70%, transparent)"
              nodeColor={cardColour}
            />
          )}
        </ReactFlow>
      </DrawnContext>
    </div>
  )
})

function allowTask(event: DragEvent): void {
  if (event.dataTransfer.types.includes(taskDragType)) event.preventDefault()
}

/** Shows the graph in its free space. */
function show(flow: ReactFlowInstance<FlowNode, FlowEdge>, cards: Graph['cards'], limits: typeof fitOptions): void {
  const free = freeSpace()
  const boxes = cards.map(({ at, width, height }) => ({ ...at, width, height }))
  if (free) void flow.setViewport(viewOf(boxes, free, limits))
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
const sizes = new WeakMap<Ports, Required<Pick<FlowNode, 'measured' | 'handles'>>>()

/** The size and ports of a card that was not drawn yet, so that only cards in view need to be. */
function unmeasured(ports: Ports, isNode: boolean, before: FlowNode['measured']): Partial<FlowNode> {
  let known = sizes.get(ports)
  if (!known) sizes.set(ports, (known = expected(ports, isNode)))
  return { measured: before ?? known.measured, handles: known.handles }
}

function expected(ports: Ports, isNode: boolean): Required<Pick<FlowNode, 'measured' | 'handles'>> {
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

/** The colour of a card in the overview: of what its task makes. */
const cardColour = ({ data: { node } }: FlowNode): string => {
  const kind = node && isTask(node.task) ? kindOfTask(node.task) : undefined
  return kind === undefined ? 'var(--color-control)' : `var(--color-kind-${kind})`
}

const mayDelete = () => Promise.resolve(isGraphFocused())

const sameData = (a: NodeCardData, b: NodeCardData): boolean =>
  a.node === b.node &&
  a.expanded === b.expanded &&
  (a.ports === b.ports || JSON.stringify(a.ports) === JSON.stringify(b.ports))
