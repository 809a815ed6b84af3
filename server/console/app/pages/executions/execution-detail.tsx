import { Ban, GitCompare, Network, RotateCcw } from 'lucide-react'
import { useState } from 'react'
import { Link } from 'wouter'
import { hasEnded, useSession } from '../../api/client.ts'
import { JobStatus } from '../../components/badge.tsx'
import { Button, ButtonLink, TextLink } from '../../components/button.tsx'
import { Cost } from '../../components/cost.tsx'
import { durationText, knownDuration } from '../../components/format.ts'
import { loaded } from '../../components/loaded.tsx'
import { TaskLabel } from '../../components/marks.tsx'
import { BackLink, Below, Loading, Notice, PageHeading, Queried, useBeginning } from '../../components/page.tsx'
import { InputsView } from '../../components/result/inputs-view.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { Tabs } from '../../components/tabs.tsx'
import { TagLinks } from '../../components/tags.tsx'
import { executionsText as text } from '../../text/executions.ts'
import { ApprovalNotices } from './approval-notice.tsx'
import { compareHref } from './compare/comparison.ts'
import { NodeDetail, useRetry } from './node-detail.tsx'
import { TimeLine } from './time-line.tsx'
import { useApprovals } from './use-approvals.ts'
import { useCancel } from './use-cancel.ts'
import { type Execution, type ExecutionNode, useExecution } from './use-execution.ts'

const ExecutionGraph = loaded(() => import('./execution-graph.tsx'), <Loading lines={8} />)

const { label: viewsLabel, ...views } = text.views

/** One execution: its graph, time line and nodes, live until its end. */
export function ExecutionDetail({ id }: { id: string }) {
  useBeginning()
  const query = useExecution(id)
  return (
    <>
      <BackLink page="executions" />
      <Queried query={query} lines={8} gone={text.gone}>
        {execution => <Shown execution={execution} />}
      </Queried>
    </>
  )
}

function Shown({ execution }: { execution: Execution }) {
  const [view, setView] = useState<keyof typeof views>('graph')
  const [selected, select] = useState<string>()
  const { nodes = [], progress, error, warnings, workflow_id, workflow_name, workflow_version } = execution
  const { approvals, areRead } = useApprovals(execution)
  const chosen = nodes.find(({ node_id }) => node_id === selected)
  return (
    <>
      <PageHeading
        title={<span className="font-mono text-base break-all">{execution.id}</span>}
        name={execution.id}
        badge={<JobStatus status={execution.status} />}
        actions={
          <>
            {workflow_id !== null && (
              <ButtonLink
                href={`/workflows/${workflow_id}?execution=${execution.id}`}
                icon={Network}
                label={text.inEditor}
              />
            )}
            <ButtonLink href={otherHref(execution)} icon={GitCompare} label={text.compare.with} />
            <ExecutionActions execution={execution} />
          </>
        }
        about={
          <>
            {workflow_id === null ? (
              text.unsaved
            ) : (
              <Link href={`/workflows/${workflow_id}`} className="text-accent hover:underline">
                {workflow_name}
              </Link>
            )}
            {workflow_version !== null && ` · ${text.version(workflow_version)}`}
            {execution.parent_node && (
              <>
                {' · '}
                <Link
                  href={`/executions/${execution.parent_node.execution_id}`}
                  className="text-accent hover:underline"
                >
                  {text.runBy(execution.parent_node.node_id)}
                </Link>
              </>
            )}
            {execution.parent_execution_id !== null && (
              <>
                {' · '}
                <TextLink
                  href={compareHref(execution.parent_execution_id, execution.id)}
                  label={text.compare.withEarlier}
                />
              </>
            )}
            {` · ${text.progress(progress)}`}
            {execution.duration_ms !== null && ` · ${durationText(execution.duration_ms)}`}
            {execution.cost > 0 && (
              <>
                {' · '}
                <Cost of={execution.cost} />
              </>
            )}
          </>
        }
      />
      <div className="mb-4 empty:hidden">
        <TagLinks path="/executions" tags={execution.tags} />
      </div>
      {execution.waiting_for && (
        <Notice kind="info" className="mb-4">
          {execution.waiting_for.detail}
        </Notice>
      )}
      {error && (
        <Notice kind="bad" className="mb-4">
          <span className="min-w-0 flex-1 break-words">{error.cause?.message ?? error.message}</span>
          {error.node_id && (
            <Button small onClick={() => select(error.node_id!)} label={text.failedAt(error.node_id)} />
          )}
        </Notice>
      )}
      <ApprovalNotices approvals={approvals} className="mb-4" />
      {warnings.length > 0 && (
        <Notice kind="warning" className="mb-4">
          <span>
            {text.warnings}: {warnings.map(({ node_id, message }) => `${node_id}: ${message}`).join(' ')}
          </span>
        </Notice>
      )}
      <Below isSettled={areRead}>
        <div className={chosen ? 'grid gap-6 lg:grid-cols-[1fr_22rem]' : ''}>
          <div className="min-w-0">
            <Tabs label={viewsLabel} names={views} current={view} choose={setView}>
              {view === 'graph' && (
                <ExecutionGraph execution={execution} nodes={nodes} selected={selected} select={select} />
              )}
              {view === 'time' && <TimeLine execution={execution} nodes={nodes} show={select} />}
              {view === 'list' && <NodeTable nodes={nodes} show={select} />}
              {view === 'inputs' &&
                (Object.keys(execution.input_params).length > 0 ? (
                  <InputsView inputs={execution.input_params} />
                ) : (
                  <p className="text-muted">{text.noParameters}</p>
                ))}
            </Tabs>
          </div>
          {chosen && (
            <NodeDetail
              key={chosen.node_id}
              execution={execution}
              node={chosen}
              approvals={approvals}
              close={() => select(undefined)}
            />
          )}
        </div>
      </Below>
    </>
  )
}

/** Where the execution to compare with is chosen: among those of the same workflow, if it is stored. */
function otherHref({ id, workflow_id }: Execution): string {
  const params = new URLSearchParams({ compare: id, ...(workflow_id === null ? {} : { workflow: workflow_id }) })
  return `/executions?${params}`
}

function NodeTable({ nodes, show }: { nodes: readonly ExecutionNode[]; show: (id: string) => void }) {
  const columns: readonly Column<ExecutionNode>[] = [
    {
      name: text.columns.node,
      show: ({ node_id }) => (
        <button type="button" className="text-accent text-left hover:underline" onClick={() => show(node_id)}>
          {node_id}
        </button>
      ),
    },
    {
      name: text.columns.status,
      show: ({ status, progress, awaits }) => <JobStatus status={status} progress={progress} awaits={awaits} />,
    },
    { name: text.node.task, wideOnly: true, show: ({ task }) => <TaskLabel task={task} /> },
    { name: text.node.model, show: ({ model_id }) => model_id },
    {
      name: text.columns.duration,
      number: true,
      show: ({ duration_ms }) => knownDuration(duration_ms),
    },
  ]
  return <Table label={text.views.list} columns={columns} rows={nodes} rowKey="node_id" />
}

/** What can be done with an execution in its state. */
function ExecutionActions({ execution }: { execution: Execution }) {
  const { can } = useSession()
  const { retry, busy } = useRetry(execution)
  const cancel = useCancel(execution.id)
  if (!can('user:write')) return null
  if (!hasEnded(execution))
    return <Button danger icon={Ban} busy={cancel.isPending} onClick={() => cancel.mutate()} label={text.cancel} />
  return (
    <>
      {execution.status !== 'completed' && (
        <Button icon={RotateCcw} busy={busy} onClick={() => retry('failed')} label={text.retryFailed} />
      )}
      <Button busy={busy} onClick={() => retry('start')} label={text.retryAll} />
    </>
  )
}
