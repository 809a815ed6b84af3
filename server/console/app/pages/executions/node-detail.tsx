import { X } from 'lucide-react'
import { useLocation } from 'wouter'
import { api, dataOf, hasEnded, useSession } from '../../api/client.ts'
import { useAction } from '../../components/announcements.tsx'
import { JobStatus } from '../../components/badge.tsx'
import { Button, IconButton, TextLink } from '../../components/button.tsx'
import { durationText, sentenceText } from '../../components/format.ts'
import { Facts, Notice, Queried } from '../../components/page.tsx'
import { InputsView } from '../../components/result/inputs-view.tsx'
import { TaskResult } from '../../components/result/task-result.tsx'
import { UnfinishedImageOf } from '../../components/result/unfinished-image.tsx'
import { executionsText as text } from '../../text/executions.ts'
import { jobsText } from '../../text/jobs.ts'
import { shellText } from '../../text/shell.ts'
import { taskName } from '../../text/tasks.ts'
import { ApprovalNotices } from './approval-notice.tsx'
import { itemsText } from './items-text.ts'
import type { Approval } from './use-approvals.ts'
import { type Execution, type ExecutionNode, useWholeNode } from './use-execution.ts'

interface NodeDetailProps {
  execution: Execution
  node: ExecutionNode
  /** The questions to people that are open in the execution. */
  approvals: readonly Approval[]
  close: () => void
}

/** One node of an execution: its inputs and result, why it waits or failed. */
export function NodeDetail({ execution, node, approvals, close }: NodeDetailProps) {
  const { id } = execution
  const { node_id, status, waiting_for: waiting, error, job_id, duration_ms } = node
  const query = useWholeNode(id, node)
  return (
    <section
      aria-label={text.node.title(node_id)}
      className="bg-surface border-line min-w-0 self-start rounded-lg border p-4"
    >
      <div className="mb-3 flex items-start justify-between gap-2">
        <div className="min-w-0">
          <h2 className="font-semibold break-words">{node_id}</h2>
          <JobStatus status={status} progress={node.progress} awaits={node.awaits} />
        </div>
        <IconButton icon={X} label={shellText.close} onClick={close} />
      </div>
      <ApprovalNotices approvals={approvals.filter(approval => approval.node_id === node_id)} className="mb-2" />
      {waiting && <Notice kind="info">{`${jobsText.waiting}: ${sentenceText(waiting.detail)}`}</Notice>}
      {error && <Notice kind="bad">{error.message}</Notice>}
      {node.skip_reason && <Notice kind="info">{text.skipReasons[node.skip_reason]}</Notice>}
      {node.cached && <Notice kind="info">{text.cached}</Notice>}
      {node.pinned && <Notice kind="info">{text.pinned}</Notice>}
      <Facts
        className="my-3 grid grid-cols-[auto_1fr] gap-x-4 gap-y-1"
        rows={[
          [text.node.task, taskName(node.task)],
          [text.node.model, node.model_id],
          [text.node.duration, duration_ms !== null && durationText(duration_ms)],
          [text.node.items, node.items && itemsText(node.items)],
          [text.node.attempts, node.attempts > 1 && node.attempts],
        ]}
      />
      <div className="mb-4 flex flex-wrap gap-2">
        {node.child_execution_id !== null && (
          <TextLink
            href={`/executions/${node.child_execution_id}`}
            className="self-center"
            label={text.node.openChild}
          />
        )}
        {job_id !== null && <TextLink href={`/jobs/${job_id}`} className="self-center" label={text.node.openJob} />}
        {node.awaits === 'time' && node.items === null && <GoOn execution={execution} node={node_id} />}
        <RetryFrom execution={execution} from={node_id} />
      </div>
      <Queried query={query}>
        {({ node: whole }) => (
          <>
            {whole.awaits === 'event' && whole.answer_url !== null && (
              <Notice kind="info" className="mb-3">
                <span className="min-w-0 break-all">
                  {text.sendEvent} <code>{whole.answer_url}</code>
                </span>
              </Notice>
            )}
            <h3 className="mb-1 font-medium">{text.node.result}</h3>
            {whole.status === 'running' && whole.job_id !== null && makesPreviews(whole.resolved_inputs) ? (
              <UnfinishedImageOf jobId={whole.job_id} />
            ) : (whole.result ?? null) === null ? (
              <p className="text-muted">{text.node.noResult}</p>
            ) : (
              <TaskResult result={whole.result} inputs={whole.resolved_inputs} />
            )}
            <h3 className="mt-4 mb-1 font-medium">{text.node.inputs}</h3>
            {(whole.resolved_inputs ?? null) === null ? (
              <p className="text-muted">{text.node.noInputs}</p>
            ) : (
              <InputsView inputs={whole.resolved_inputs} />
            )}
          </>
        )}
      </Queried>
    </section>
  )
}

const makesPreviews = (inputs: unknown): boolean => Boolean((inputs as { previews?: number } | null)?.previews)

/** Ends the wait of a node for a time. */
function GoOn({ execution: { id }, node }: { execution: Execution; node: string }) {
  const { can } = useSession()
  const { mutate, isPending } = useAction(
    () => api.POST('/api/workflow-executions/{id}/nodes/{node}/resolve', { params: { path: { id, node } }, body: {} }),
    () => text.goesOn(node),
    ['executions'],
  )
  if (!can('user:write')) return null
  return <Button small busy={isPending} onClick={() => mutate()} label={text.node.goOn} />
}

/** Runs this node and those after it again, in a new execution. */
function RetryFrom({ execution, from }: { execution: Execution; from: string }) {
  const { can } = useSession()
  const { retry, busy } = useRetry(execution)
  if (!can('user:write') || !hasEnded(execution)) return null
  return <Button small busy={busy} onClick={() => retry(from)} label={text.node.retryFrom} />
}

/** The function that runs an execution again: from `failed`, `start` or a node. It opens the new execution. */
export function useRetry({ id }: Pick<Execution, 'id'>) {
  const [, go] = useLocation()
  const { mutate, isPending } = useAction(
    (from: string) =>
      dataOf(api.POST('/api/workflow-executions/{id}/retry', { params: { path: { id } }, body: { from } })),
    ({ execution }) => {
      go(`/executions/${execution.id}`)
      return text.retried
    },
  )
  return { retry: mutate, busy: isPending }
}
