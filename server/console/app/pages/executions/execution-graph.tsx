import {
  Background,
  Controls,
  type Edge,
  type Node,
  type NodeChange,
  Position,
  ReactFlow,
  type ReactFlowInstance,
} from '@xyflow/react'
import { memo, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'react'
import { usePlaces } from '../../components/graph/use-places.ts'
import { executionsText as text } from '../../text/executions.ts'
import { ExecutionLine } from './execution-line.tsx'
import { cardSize, graphOfExecution } from './graph-of-execution.ts'
import { ExecutionNodeCard, farZoom, nameId } from './node-card.tsx'
import { NodeStatesContext, openNodeStates } from './node-states.ts'
import type { Execution, ExecutionNode } from './use-execution.ts'

type Select = (id: string | undefined) => void

const nodeTypes = { node: ExecutionNodeCard }
const edgeTypes = { line: ExecutionLine }
const proOptions = { hideAttribution: true }
const fitOptions = { padding: 0.1, maxZoom: 1 }
/** The view of a node that is selected where it cannot be read. */
const nearOptions = { maxZoom: 0.75 }
/** Above this number of nodes only what is in view is drawn. */
const manyNodes = 60
// Sizes and handles are known, so nothing is measured when a node is drawn.
const handles = [
  { type: 'target' as const, position: Position.Left, x: 0, y: cardSize.height / 2, width: 0, height: 0 },
  { type: 'source' as const, position: Position.Right, x: cardSize.width, y: cardSize.height / 2, width: 0, height: 0 },
]

interface ExecutionGraphProps {
  execution: Execution
  nodes: readonly ExecutionNode[]
  selected: string | undefined
  select: Select
}

/** The graph with live state, progress and previews. A node is drawn again only if it changed. */
export default function ExecutionGraph({ execution: { dag }, nodes, selected, select }: ExecutionGraphProps) {
  const [states] = useState(openNodeStates)
  useLayoutEffect(() => states.set(nodes), [states, nodes])
  return (
    <div className="border-line h-[26rem] overflow-hidden rounded-lg border lg:h-[32rem]">
      <NodeStatesContext value={states}>
        <Graph dag={dag} selected={selected} select={select} />
      </NodeStatesContext>
    </div>
  )
}

/** Changes with the selection only: the state of nodes does not pass through it. */
const Graph = memo(function Graph({
  dag,
  selected,
  select,
}: {
  dag: Execution['dag']
  selected: string | undefined
  select: Select
}) {
  const graph = useMemo(() => graphOfExecution({ dag }), [dag])
  const places = usePlaces(graph.boxes, graph.edges)
  const placed = useMemo(
    () =>
      [...places].map(
        ([id, position]): Node => ({
          id,
          type: 'node',
          position,
          data: {},
          ...cardSize,
          measured: cardSize,
          handles,
          draggable: false,
          connectable: false,
          deletable: false,
          domAttributes: { 'aria-labelledby': nameId(id) },
        }),
      ),
    [places],
  )
  const nodes = useMemo(
    () => placed.map(node => (node.id === selected ? { ...node, selected: true } : node)),
    [placed, selected],
  )
  const edges = useMemo(
    () =>
      graph.edges.map(
        ({ from, to }): Edge => ({ id: `${from} ${to}`, source: from, target: to, type: 'line', focusable: false }),
      ),
    [graph],
  )
  const instance = useRef<ReactFlowInstance>(undefined)
  const detailShown = useRef(false)
  useEffect(() => {
    // The detail of a node takes some of the width of the graph, after this render.
    const timer = setTimeout(() => {
      const flow = instance.current
      const resized = detailShown.current !== (selected !== undefined)
      detailShown.current = selected !== undefined
      if (selected !== undefined && flow !== undefined && flow.getZoom() < farZoom)
        void flow.fitView({ ...nearOptions, nodes: [{ id: selected }] })
      else if (resized) void flow?.fitView(fitOptions)
    }, 50)
    return () => clearTimeout(timer)
  }, [selected])
  const opened = useCallback((one: ReactFlowInstance) => {
    instance.current = one
  }, [])
  const choose = useCallback((_: unknown, { id }: Node) => select(id), [select])
  const clear = useCallback(() => select(undefined), [select])
  const change = useCallback(
    (changes: NodeChange[]) => {
      const chosen = changes.find(one => one.type === 'select' && one.selected)
      if (chosen && 'id' in chosen) select(chosen.id)
    },
    [select],
  )
  return (
    <ReactFlow
      aria-label={text.graphLabel}
      nodes={nodes}
      edges={edges}
      nodeTypes={nodeTypes}
      edgeTypes={edgeTypes}
      onInit={opened}
      onNodeClick={choose}
      onPaneClick={clear}
      onNodesChange={change}
      nodesConnectable={false}
      deleteKeyCode={null}
      onlyRenderVisibleElements={nodes.length > manyNodes}
      proOptions={proOptions}
      fitViewOptions={fitOptions}
      minZoom={0.05}
      fitView
    >
      <Background />
      <Controls showInteractive={false} />
    </ReactFlow>
  )
})
