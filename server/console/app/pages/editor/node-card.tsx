import { type NodeProps, useUpdateNodeInternals } from '@xyflow/react'
import { ChevronDown, ChevronRight, Pin, Repeat, StickyNote } from 'lucide-react'
import { memo, useEffect, useId, useRef, useState } from 'react'
import { taskEdge } from '../../components/colours.ts'
import { editorText } from '../../text/editor.ts'
import { itemsText } from '../executions/items-text.ts'
import { type ExecutionNode } from '../executions/use-execution.ts'
import { countProblems, type ProblemCounts } from './document/diagnostics.ts'
import { parametersId, sizeOf } from './document/graph.ts'
import { inputHandle, listHandle, orderHandles, outputHandle, type Ports } from './document/ports.ts'
import { outputText } from './document/references.ts'
import type { TaskFacts } from './document/schema.ts'
import type { WorkflowNode } from './document/workflow-document.ts'
import { useCards, useProblems } from './editor-context.ts'
import { LivePorts, Port, PortKindMark } from './port.tsx'
import { NodeBadge, ResultPreview } from './run/node-run.tsx'
import { CardWait } from './run/node-wait.tsx'
import { useTimeSlice } from './use-time-slice.ts'

export interface NodeCardData extends Record<string, unknown> {
  /** Undefined: the parameters of the workflow. */
  node: WorkflowNode | undefined
  ports: Ports
  expanded: ReadonlySet<string>
  unfold: (key: string) => void
  /** One of very many: its size and the places of its ports are known, and what is in it is drawn later. */
  isOfMany: boolean
}

/** Pixels by which a part of a result stands right of what it is in. */
const branchIndent = 12

/** So many characters fit in a card in every script. */
const fittingCharacters = 12
/** Each element that cuts its text off costs time in every frame in which the graph is drawn. */
const cutOff = (text: string): string => (text.length > fittingCharacters ? 'truncate' : 'whitespace-nowrap')

/** A node of the graph: task, model, state, and the ports that values are dragged between. */
export const NodeCard = memo(function NodeCard({ id, data, selected }: NodeProps & { data: NodeCardData }) {
  const { tasks, runs } = useCards()
  const problems = useProblems()
  const { node } = data
  return (
    <Card
      id={id}
      data={data}
      selected={selected}
      task={node && tasks.get(node.task)}
      run={node && runs.get(node.id)}
      {...countProblems(problems, node?.id)}
    />
  )
})

interface CardProps extends ProblemCounts {
  id: string
  data: NodeCardData
  selected: boolean
  task: TaskFacts | undefined
  run: ExecutionNode | undefined
}

/** What is drawn of a node: again only if something of it has changed, because each edit may change any of them. */
const Card = memo(function Card({ id, data, selected, task, run, errors, warnings }: CardProps) {
  const { node, ports, expanded, unfold, isOfMany } = data
  // Cards that come into view are drawn a few at a time.
  const isWhole = useTimeSlice(isOfMany)
  // The library's handles listen to all of its state, so a card has them once the pointer was on it.
  const [isLive, setLive] = useState(!isOfMany || hasTouch)
  const cardId = node?.id ?? parametersId
  const title = node ? (node.name ?? node.id) : editorText.parameters
  const update = useUpdateNodeInternals()
  const shape = [
    ports.list !== undefined,
    ...ports.inputs.map(({ path }) => inputHandle(path)),
    ...ports.outputs.map(({ path }) => path),
  ].join()
  // The library measures a card when it is drawn first. Each update makes it look through all nodes.
  const measured = useRef(shape)
  useEffect(() => {
    if (measured.current === shape) return
    measured.current = shape
    update(id)
  }, [update, id, shape])
  const ring = selected ? 'outline-accent outline-2' : ''
  const edge =
    errors > 0 ? 'border-bad' : run?.status === 'running' || run?.status === 'waiting' ? 'border-accent' : 'border-line'
  return (
    <div
      onPointerEnter={() => setLive(true)}
      // With a size that the library knows, it measures nothing.
      style={isOfMany && !run ? { height: sizeOf(ports).height } : undefined}
      className={`bg-surface w-[248px] rounded-lg border text-xs shadow-xs ${edge} ${ring} ${task ? taskEdge(task.id) : ''}`}
    >
      <LivePorts value={isLive}>
        <div className="border-line relative border-b px-3 py-2">
          {node && (
            <>
              <Port card={node.id} ports={ports} handle={orderHandles.after} title={editorText.orderTarget} />
              <Port card={node.id} ports={ports} handle={orderHandles.before} title={editorText.orderPort} />
            </>
          )}
          <div className="flex items-center justify-between gap-2">
            <span className={`${cutOff(title)} text-sm font-semibold`}>{title}</span>
            <NodeBadge run={run} errors={errors} warnings={warnings} />
          </div>
          {node && (
            <div className="flex items-center gap-1">
              <p className="text-muted min-w-0 flex-1 truncate">
                {task?.title ?? editorText.unknownTask}
                {task?.needs_model !== false && ` · ${node.model ?? editorText.noModel}`}
              </p>
              {node.pin !== undefined && (
                <Pin role="img" aria-label={editorText.pin} className="text-accent size-3.5" />
              )}
              {node.note !== undefined && <Note text={node.note} />}
            </div>
          )}
        </div>
        {isWhole && (
          <>
            {ports.list !== undefined && (
              <div className="bg-accent-soft text-accent relative flex h-6 items-center gap-1.5 px-3">
                <Port card={cardId} ports={ports} handle={listHandle} title={editorText.listPort} />
                <Repeat aria-hidden className="size-3.5 shrink-0" />
                <span className="truncate" title={editorText.forEachOf(ports.list)}>
                  {editorText.forEachOf(ports.list)}
                </span>
                {run?.items && <span className="ml-auto shrink-0">{itemsText(run.items)}</span>}
              </div>
            )}
            {ports.inputs.map(({ path, name, required, taken: { kind } }) => (
              <div key={inputHandle(path)} className="group/port relative flex h-6 items-center gap-1.5 px-3">
                <Port
                  card={cardId}
                  ports={ports}
                  handle={inputHandle(path)}
                  title={editorText.input(outputText(path))}
                />
                <span className={`${cutOff(name)} ${required ? 'font-medium' : ''}`} title={outputText(path)}>
                  {name}
                </span>
                <PortKindMark kind={kind} />
              </div>
            ))}
            {node && task && (
              <Unfold
                open={expanded.has(`in ${node.id}`)}
                names={[editorText.moreInputs, editorText.fewerInputs]}
                press={() => unfold(`in ${node.id}`)}
              />
            )}
            {ports.outputs.map(({ path, name, carries, branch }) => (
              <div key={path} className="group/port relative flex h-6 items-center justify-end gap-1.5 px-3">
                <span
                  className={branch ? 'flex-1 truncate' : cutOff(name)}
                  style={branch && { paddingLeft: branch.depth * branchIndent }}
                  title={path}
                >
                  {branch?.label ?? name}
                </span>
                <PortKindMark kind={carries} />
                <Port card={cardId} ports={ports} handle={outputHandle(path)} title={editorText.output(path)} />
              </div>
            ))}
            {node && task && (
              <Unfold
                open={expanded.has(`out ${node.id}`)}
                names={[editorText.allOutputs, editorText.fewerOutputs]}
                press={() => unfold(`out ${node.id}`)}
                right
              />
            )}
            {node && run?.status === 'waiting' && <CardWait id={node.id} />}
            {run && <ResultPreview node={run} small />}
          </>
        )}
      </LivePorts>
    </div>
  )
})

/** With fingers there is no pointer over a card before it is touched. */
const hasTouch = matchMedia('(any-pointer: coarse)').matches

/** A mark that shows what people should know about the node while the pointer or the focus is on it. */
function Note({ text }: { text: string }) {
  const id = useId()
  return (
    <span className="group nodrag relative flex">
      <button
        type="button"
        aria-label={editorText.note}
        aria-describedby={id}
        className="flex size-6 items-center justify-center rounded"
      >
        <StickyNote aria-hidden className="text-warning size-3.5" />
      </button>
      <span
        id={id}
        role="tooltip"
        className="bg-surface text-text border-line invisible absolute top-full right-0 z-10 max-h-40 w-52 overflow-y-auto rounded-md border p-2 break-words whitespace-pre-wrap shadow-md group-focus-within:visible group-hover:visible"
      >
        {text}
      </span>
    </span>
  )
}

interface UnfoldProps {
  open: boolean
  names: readonly [string, string]
  press: () => void
  right?: boolean
}

function Unfold({ open, names: [more, less], press, right = false }: UnfoldProps) {
  const Icon = open ? ChevronDown : ChevronRight
  return (
    <div className={`flex px-2 pb-1 ${right ? 'justify-end' : ''}`}>
      <button
        type="button"
        aria-expanded={open}
        onClick={press}
        className="nodrag text-muted hover:text-text inline-flex h-6 items-center gap-0.5 rounded px-1"
      >
        <Icon aria-hidden className="size-3" />
        {open ? less : more}
      </button>
    </div>
  )
}
