import { Handle, type Node, type NodeProps, Position, useStore } from '@xyflow/react'
import { memo } from 'react'
import { ownUrl } from '../../components/addresses.ts'
import { JobStatus, statusLook } from '../../components/badge.tsx'
import { taskEdge } from '../../components/colours.ts'
import { KindIcon, TaskLabel } from '../../components/marks.tsx'
import { Progress } from '../../components/meter.tsx'
import { mediaIn, resultTextIn } from '../../components/result/result-facts.ts'
import { executionsText as text } from '../../text/executions.ts'
import { jobsText } from '../../text/jobs.ts'
import { itemsText } from './items-text.ts'
import { useNodeState } from './node-states.ts'
import type { ExecutionNode } from './use-execution.ts'

/** Below this zoom nothing of a card can be read, so only its name and state are drawn. */
export const farZoom = 0.5

/** The id of the text that names the card of a node: its state is part of the name and changes. */
export const nameId = (node: string): string => `node-name-${node}`

const handle = '!bg-control !size-1.5 !min-w-0 !border-0'
const edges: Readonly<Record<string, string>> = {
  failed: 'border-bad',
  timed_out: 'border-bad',
  running: 'border-accent',
  waiting: 'border-accent',
}

/** A node in the graph of an execution. All cards have one size, so that a result does not move the others. */
export const ExecutionNodeCard = memo(function ExecutionNodeCard({ id, selected }: NodeProps<Node>) {
  const node = useNodeState(id)
  const isFar = useStore(({ transform }) => transform[2] < farZoom)
  const status = node?.status ?? 'pending'
  const said = jobsText.awaits[node?.awaits ?? ''] ?? jobsText.statuses[status] ?? status
  const edge = selected ? 'border-accent outline-accent outline-2' : (edges[status] ?? 'border-line')
  return (
    <div
      className={`relative h-full rounded-lg border text-xs ${edge} ${node ? taskEdge(node.task) : ''} ${isFar ? statusLook(status) : 'bg-surface'}`}
    >
      <span id={nameId(id)} className="sr-only">
        {text.nodeLabel(id, said)}
      </span>
      <Handle type="target" position={Position.Left} className={handle} />
      <Handle type="source" position={Position.Right} className={handle} />
      {isFar ? (
        <p className="truncate px-2 pt-6 text-center text-[2.25rem] font-semibold">{id}</p>
      ) : (
        node && <Near node={node} />
      )}
    </div>
  )
})

function Near({ node }: { node: ExecutionNode }) {
  const { node_id: id, task, model_id, status, awaits, progress, cached, pinned, error, result, items } = node
  const [medium] = mediaIn(result)
  const words = error?.message ?? (medium ? '' : resultTextIn(result))
  return (
    <>
      <div className="flex gap-2 px-3 py-2">
        <div className="min-w-0 flex-1 space-y-1">
          <p className="truncate text-sm font-semibold">{id}</p>
          <p>
            <JobStatus status={status} progress={progress} awaits={awaits} />
            {cached && <span className="text-muted"> {text.cachedShort}</span>}
            {pinned && <span className="text-muted"> {text.pinnedShort}</span>}
            {items && <span className="text-muted"> {itemsText(items)}</span>}
          </p>
          {words === '' ? (
            <p className="text-muted flex items-center gap-1.5">
              <TaskLabel task={task} />
              {model_id && <span className="min-w-0 truncate">{model_id}</span>}
            </p>
          ) : (
            <p className={`line-clamp-2 break-words ${error ? 'text-bad' : ''}`}>{words}</p>
          )}
        </div>
        {medium && <Thumbnail kind={medium.kind} url={ownUrl(medium.url)} />}
      </div>
      {status === 'running' && typeof progress === 'number' && (
        <Progress value={progress} className="absolute inset-x-0 bottom-0" />
      )}
    </>
  )
}

/** What a node made, small; the detail of the node shows it in full and with its controls. */
function Thumbnail({ kind, url }: { kind: 'image' | 'video' | 'audio'; url: string }) {
  const look = 'bg-raised size-20 shrink-0 rounded object-cover'
  if (kind === 'image') return <img src={url} alt="" loading="lazy" decoding="async" className={look} />
  if (kind === 'video') return <video src={url} aria-hidden muted preload="metadata" className={look} />
  return <KindIcon kind="audio" className="bg-raised size-20 rounded p-5" />
}
