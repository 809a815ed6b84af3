import {
  Background,
  Controls,
  type Edge,
  Handle,
  type Node,
  type NodeProps,
  Position,
  ReactFlow,
  type ReactFlowInstance,
} from '@xyflow/react'
import { memo, useEffect, useMemo, useRef, useState } from 'react'
import { JobStatus } from '../../components/job-status.tsx'
import { executionsText as text } from '../../text/executions.ts'
import { jobsText } from '../../text/jobs.ts'
import { ResultPreview } from '../editor/run/result-preview.tsx'
import { cardSize, graphOfExecution } from './graph-of-execution.ts'
import type { Execution, ExecutionNode } from './use-execution.ts'

type FlowNode = Node<{ node: ExecutionNode }>

const nodeTypes = { node: memo(NodeCard) }
const proOptions = { hideAttribution: true }
const fitOptions = { padding: 0.1, maxZoom: 1 }
/** Above this number of nodes only what is in view is drawn. */
const manyNodes = 60

/** The graph with live state, progress and previews. A node is drawn again only if it changed. */
export default function ExecutionGraph({
  execution,
  nodes,
  selected,
  select,
}: {
  execution: Execution
  nodes: readonly ExecutionNode[]
  selected: string | undefined
  select: (id: string | undefined) => void
}) {
  const { dag } = execution
  const graph = useMemo(() => graphOfExecution({ dag }), [dag])
  const [flow, setFlow] = useState<FlowNode[]>([])
  const drawn = useRef<FlowNode[]>([])
  useEffect(() => {
    const before = new Map(drawn.current.map(one => [one.id, one]))
    const next = nodes.map((node): FlowNode => {
      const { node_id: id, status } = node
      const old = before.get(id)
      const isSelected = id === selected
      if (old?.data.node === node && old.selected === isSelected) return old
      return {
        ...old,
        id,
        type: 'node',
        position: graph.places.get(id) ?? { x: 0, y: 0 },
        data: { node },
        selected: isSelected,
        draggable: false,
        connectable: false,
        deletable: false,
        ariaLabel: text.nodeLabel(id, jobsText.statuses[status] ?? status),
      }
    })
    drawn.current = next
    setFlow(next)
  }, [nodes, graph, selected])
  // The detail of a node stands beside the graph and takes some of its width.
  const instance = useRef<ReactFlowInstance<FlowNode>>(undefined)
  const detailShown = selected !== undefined
  useEffect(() => {
    const timer = setTimeout(() => void instance.current?.fitView(fitOptions), 50)
    return () => clearTimeout(timer)
  }, [detailShown])
  const running = useMemo(
    () => new Set(nodes.filter(({ status }) => status === 'running').map(({ node_id }) => node_id)),
    [nodes],
  )
  const edges = useMemo(
    (): Edge[] =>
      graph.edges.map(({ from, to }) => ({
        id: `${from} ${to}`,
        source: from,
        target: to,
        animated: running.has(to),
        focusable: false,
      })),
    [graph, running],
  )
  return (
    <div className="border-line h-[26rem] overflow-hidden rounded-lg border lg:h-[32rem]">
      <ReactFlow<FlowNode>
        aria-label={text.graphLabel}
        nodes={flow}
        edges={edges}
        nodeTypes={nodeTypes}
        onInit={opened => {
          instance.current = opened
        }}
        onNodeClick={(_, { id }) => select(id)}
        onPaneClick={() => select(undefined)}
        onNodesChange={changes => {
          const chosen = changes.find(change => change.type === 'select' && change.selected)
          if (chosen && 'id' in chosen) select(chosen.id)
        }}
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
    </div>
  )
}

const handle = '!bg-control !size-1.5 !min-w-0 !border-0'

function NodeCard({ data: { node }, selected }: NodeProps<FlowNode>) {
  const { node_id: id, task, model_id, status, progress, cached } = node
  const edge = selected
    ? 'border-accent outline-accent outline-2'
    : status === 'failed' || status === 'timed_out'
      ? 'border-bad'
      : status === 'running'
        ? 'border-accent'
        : 'border-line'
  return (
    <div
      className={`bg-surface rounded-lg border text-xs ${edge}`}
      style={{ width: cardSize.width, minHeight: cardSize.height - 24 }}
    >
      <Handle type="target" position={Position.Left} className={handle} />
      <Handle type="source" position={Position.Right} className={handle} />
      <div className="space-y-1 px-3 py-2">
        <div className="flex items-center justify-between gap-2">
          <span className="truncate text-sm font-semibold">{id}</span>
          <JobStatus status={status} progress={progress} />
        </div>
        <p className="text-muted truncate">{[task, model_id].filter(Boolean).join(' · ')}</p>
        {cached && <p className="text-muted">{text.cachedShort}</p>}
      </div>
      <ResultPreview node={node} small />
    </div>
  )
}
