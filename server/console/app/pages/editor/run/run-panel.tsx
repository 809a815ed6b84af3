import { useMutation } from '@tanstack/react-query'
import { useEffect, useMemo, useState } from 'react'
import { useLocation } from 'wouter'
import { api, at, hasEnded, useSession } from '../../../api/client.ts'
import { Button, TextLink } from '../../../components/button.tsx'
import { durationText, sentenceText } from '../../../components/format.ts'
import { Empty, Failed, Notice } from '../../../components/page.tsx'
import { editorText } from '../../../text/editor.ts'
import { itemsText } from '../../executions/items-text.ts'
import { useApprovals, useByNode } from '../../executions/use-approvals.ts'
import { type ExecutionNode, useExecution } from '../../executions/use-execution.ts'
import { useEditor } from '../editor-context.ts'
import { ResultPreview, RunBadge } from './node-run.tsx'
import { NodeWait } from './node-wait.tsx'
import type { Runnable } from './run-dialog.tsx'

/** The execution that was started from the editor: its state, and what each node made. */
export function RunPanel({
  run: { execution, failure, follow, timeLine, showTimeLine },
}: {
  run: ReturnType<typeof useRun>
}) {
  const { reveal } = useEditor()
  const { can } = useSession()
  const cancel = useMutation({
    mutationFn: (id: string) => api.POST('/api/workflow-executions/{id}/cancel', at({ id })),
  })
  if (failure) return <Failed failure={failure} />
  if (!execution) return <Empty title={editorText.noRun}>{editorText.noRunNext}</Empty>
  const { id, nodes = [], error, duration_ms: ms } = execution
  return (
    <div className="space-y-3">
      <div className="flex flex-wrap items-center gap-2">
        <h2 className="font-semibold">{editorText.execution}</h2>
        <RunBadge status={execution.status} />
        {ms !== null && <span className="text-muted">{durationText(ms)}</span>}
        <span className="flex-1" />
        {hasEnded(execution) ? (
          <Button small onClick={() => follow(undefined)} label={editorText.closeRun} />
        ) : (
          can('user:write') && (
            <Button
              small
              danger
              busy={cancel.isPending}
              onClick={() => cancel.mutate(id)}
              label={editorText.cancelRun}
            />
          )
        )}
      </div>
      {error && <Notice kind="bad">{error.message}</Notice>}
      {cancel.error && <Failed failure={cancel.error} />}
      <div className="flex flex-wrap items-center gap-3">
        <TextLink href={`/executions/${id}`} className="inline-block underline" label={editorText.openExecution} />
        {!timeLine && <Button small onClick={() => showTimeLine(true)} label={editorText.openTimeLine} />}
      </div>
      <ul className="space-y-2">
        {nodes.map(node => (
          <li key={node.node_id} className="border-line rounded-md border">
            <div className="flex flex-wrap items-center gap-2 px-3 py-2">
              <button type="button" className="text-accent min-h-6 underline" onClick={() => reveal(node.node_id)}>
                {node.node_id}
              </button>
              <RunBadge status={node.status} progress={node.progress} awaits={node.awaits} />
              {node.cached && <span className="text-muted text-xs">{editorText.fromCache}</span>}
              {node.pinned && <span className="text-muted text-xs">{editorText.pinned}</span>}
              {node.items && <span className="text-muted text-xs">{itemsText(node.items)}</span>}
              {node.duration_ms !== null && (
                <span className="text-muted text-xs">{durationText(node.duration_ms)}</span>
              )}
            </div>
            {node.waiting_for && (
              <p className="text-muted px-3 pb-2 text-xs">{sentenceText(node.waiting_for.detail)}</p>
            )}
            <NodeWait node={node} />
            <ResultPreview node={node} />
          </li>
        ))}
      </ul>
    </div>
  )
}

const none: ReadonlyMap<string, ExecutionNode> = new Map()

/** What is run from the editor: that for which the dialog is open, and the execution that is followed until its end. */
export function useRun(id: string, version: number) {
  const { can } = useSession()
  const [, go] = useLocation()
  // A link with `?run` opens the dialog at once, for what is stored.
  const [runnable, ask] = useState<Runnable | undefined>(() =>
    can('user:write') && version > 0 && new URLSearchParams(location.search).has('run') ? { id, version } : undefined,
  )
  // A link with `?execution` shows that execution over the graph.
  const [executionId, follow] = useState(() => new URLSearchParams(location.search).get('execution') ?? undefined)
  const [timeLine, showTimeLine] = useState(true)
  // A reload opens the workflow, and not the dialog again.
  useEffect(() => {
    if (location.search !== '') go(`/workflows/${id}`, { replace: true })
  }, [go, id])
  const { data, error } = useExecution(executionId, true)
  const nodes = useMemo(() => (data?.nodes ? new Map(data.nodes.map(node => [node.node_id, node])) : none), [data])
  const approvals = useByNode(useApprovals(data).approvals)
  return { runnable, ask, follow, execution: data, nodes, approvals, failure: error, timeLine, showTimeLine }
}
