import {
  applyNodeChanges,
  Background,
  type Connection,
  ControlButton,
  Controls,
  MiniMap,
  type NodeChange,
  ReactFlow,
  type ReactFlowInstance,
} from '@xyflow/react'
import { Group, Maximize } from 'lucide-react'
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
} from 'react'
import { isTask, kindOfTask } from '../../components/colours.ts'
import { editorText } from '../../text/editor.ts'
import { type Edit, moveNode, removeNodes, together } from './document/edits.ts'
import { addFrame, frameOfKey, placeOfFrame, removeFrames } from './document/frames.ts'
import { boxOfCard, editOfConnection, editOfCut, newNode, parametersId } from './document/graph.ts'
import { idOfCard } from './document/ports.ts'
import { viewOf } from './document/view.ts'
import { taskDragType } from './drawer.tsx'
import { useEditor } from './editor-context.ts'
import { FrameCard } from './frame-card.tsx'
import { freeSpace } from './free-space.ts'
import { GraphLine } from './graph-line.tsx'
import { EmptyGraph } from './list-view.tsx'
import { NodeCard } from './node-card.tsx'
import { DrawnContext } from './port.tsx'
import { isGraphFocused, useClipboard } from './use-clipboard.ts'
import { useDrawing } from './use-drawing.ts'
import { type FlowEdge, type FlowNode, useFlow } from './use-flow.ts'
import { useFrames } from './use-frames.ts'
import { type Graph, useGraph } from './use-graph.ts'

const nodeTypes = { card: NodeCard, frame: FrameCard }
const edgeTypes = { line: GraphLine }
const proOptions = { hideAttribution: true }
/** At first texts can be read, even if not all nodes are in view; the button shows all. */
const fitOptions = { minZoom: 0.55, maxZoom: 1 }
const fitAllOptions = { minZoom: 0.1, maxZoom: 1 }
/** Above this number of nodes an overview stands beside the graph. */
const manyForOverview = 8
/** The smallest zoom for many nodes: the overview beside the graph shows the whole. */
const manyMinZoom = 0.3

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
  const { frameNodes, withCarried, moved } = useFrames(cards)
  const { nodes, setNodes, edges, selectEdges } = useFlow(graph, frameNodes)
  const view = useView(graph)
  useClipboard(useMemo(() => new Set(nodes.filter(node => node.selected).map(node => idOfCard(node.id))), [nodes]))

  const changeNodes = useCallback(
    (given: NodeChange<FlowNode>[]) => {
      const changes = withCarried(given, nodes) as NodeChange<FlowNode>[]
      setNodes(now => applyNodeChanges(changes, now))
      const chosen = changes.find(change => change.type === 'select' && change.selected)
      if (chosen && 'id' in chosen) {
        select(nodeOfKey(chosen.id))
      }
      const moves = changes.flatMap(change => {
        if (change.type !== 'position' || change.dragging !== false || !change.position) return []
        const frame = frameOfKey(change.id)
        if (frame !== undefined) return moved(frame, change.position) ?? []
        const id = idOfCard(change.id)
        const card = cards.find(one => one.id === id)
        const { x, y } = change.position
        const isMoved = card?.node && (Math.round(x) !== card.at.x || Math.round(y) !== card.at.y)
        return isMoved ? moveNode(id, x, y) : []
      })
      if (moves.length === 0) return
      // Moving one node keeps the others where they are seen.
      apply(together(placesOf(cards), ...moves), 'move')
    },
    [cards, nodes, setNodes, apply, select, withCarried, moved],
  )
  const frame = () => {
    const free = freeSpace()
    const canvas = document.querySelector('.react-flow')?.getBoundingClientRect()
    if (!free || !canvas || !view.current) return
    const middle = { x: canvas.left + (free.left + free.right) / 2, y: canvas.top + (free.top + free.bottom) / 2 }
    const chosen = new Set(nodes.filter(node => node.selected).map(node => idOfCard(node.id)))
    // One node is selected for its properties.
    const inside = chosen.size > 1 ? cards.filter(({ id, node }) => node && chosen.has(id)) : []
    apply(
      together(
        placesOf(cards),
        addFrame('', placeOfFrame(inside.map(boxOfCard), view.current.screenToFlowPosition(middle))),
      ),
    )
  }
  const joined = ({ source, sourceHandle, target, targetHandle }: Connection) => {
    const edit = editOfConnection(idOfCard(source), sourceHandle, idOfCard(target), targetHandle)
    if (edit) apply(edit)
  }
  const drawing = useDrawing(cards, view)
  // It has a mark for each card, so it comes after those in view.
  const hasOverview = useDeferredValue(nodes.length > manyForOverview, false)
  const deleted = ({ nodes: gone, edges: cut }: { nodes: FlowNode[]; edges: FlowEdge[] }) => {
    const frames = gone.flatMap(({ id }) => frameOfKey(id) ?? [])
    const ids = gone.flatMap(({ id }) => nodeOfKey(id) ?? [])
    const edits: Edit[] = cut
      .filter(({ data }) => !ids.includes(data!.edge.from) && !ids.includes(data!.edge.to))
      .map(({ data }) => editOfCut(data!.edge))
    if (ids.length > 0) edits.push(removeNodes(ids))
    if (frames.length > 0) edits.push(removeFrames(frames))
    if (edits.length > 0) apply(together(...edits))
    if (selected !== undefined && ids.includes(selected)) select(undefined)
  }
  const pressedTwice = (event: MouseEvent) => {
    if (readOnly || !(event.target as Element).matches('.react-flow__pane, .react-flow__node-frame *:not(textarea)'))
      return
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

  if (isEmpty && frameNodes.length === 0)
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
          className="[&_.react-flow\_\_node-card:focus-within]:z-10! [&_.react-flow\_\_node-card:hover]:z-10! [--xy-controls-button-background-color-hover:var(--color-raised)] [--xy-controls-button-border-color:var(--color-line)] [--xy-controls-button-color-hover:var(--color-text)]"
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
          onNodeClick={(_, { id }) => select(nodeOfKey(id))}
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
            {!readOnly && (
              <ControlButton aria-label={editorText.addFrame} title={editorText.addFrameHint} onClick={frame}>
                <Group aria-hidden />
              </ControlButton>
            )}
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
  if (free && cards.length > 0) void flow.setViewport(viewOf(cards.map(boxOfCard), free, limits))
}

/** The id of a node by the key of its card; undefined for frames and the parameters. */
function nodeOfKey(key: string): string | undefined {
  const id = idOfCard(key)
  return id === parametersId || frameOfKey(key) !== undefined ? undefined : id
}

/** Keeps all nodes where they are seen, because one of them or a frame gets a place. */
const placesOf = (cards: Graph['cards']): Edit =>
  together(...cards.flatMap(({ node, at }) => (node && !node.position ? [moveNode(node.id, at.x, at.y)] : [])))

/** The colour of a card in the overview: of what its task makes. */
const cardColour = (shown: FlowNode): string => {
  if (shown.type === 'frame') return 'var(--color-raised)'
  const { node } = shown.data
  const kind = node && isTask(node.task) ? kindOfTask(node.task) : undefined
  return kind === undefined ? 'var(--color-control)' : `var(--color-kind-${kind})`
}

const mayDelete = () => Promise.resolve(isGraphFocused())
