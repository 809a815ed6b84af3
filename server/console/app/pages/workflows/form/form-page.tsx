import { useMutation } from '@tanstack/react-query'
import { Pencil, Play } from 'lucide-react'
import { useMemo, useState } from 'react'
import { ApiFailure, api, at, dataOf, hasEnded, type Schema, useAnswer, useSession } from '../../../api/client.ts'
import { JobStatus } from '../../../components/badge.tsx'
import { Button, ButtonLink, TextLink } from '../../../components/button.tsx'
import { CopyButton } from '../../../components/code.tsx'
import { durationText } from '../../../components/format.ts'
import { BackLink, Failed, Notice, PageHeading, Queried, Section, useBeginning } from '../../../components/page.tsx'
import { TaskResult } from '../../../components/result/task-result.tsx'
import { playgroundText } from '../../../text/playground.ts'
import { workflowFormText as text } from '../../../text/workflow-form.ts'
import { parametersFor } from '../../editor/document/selection.ts'
import { sourceOf } from '../../editor/document/source.ts'
import { parseWorkflow } from '../../editor/document/workflow-document.ts'
import { ApprovalNotices } from '../../executions/approval-notice.tsx'
import { useApprovals } from '../../executions/use-approvals.ts'
import { useCancel } from '../../executions/use-cancel.ts'
import { type ExecutionNode, useExecution, useWholeNode } from '../../executions/use-execution.ts'
import type { Entered } from '../../playground/form/fields.ts'
import { RequestForm, TaskForm } from '../../playground/form/task-form.tsx'
import { useErrors } from '../../playground/form/use-errors.ts'
import { executionOf, fieldsOfParameters, firstEntered, linkOf, resultNodes } from './parameter-form.ts'

/** A workflow as a form: its parameters, and below them what it makes. For people who run it and do not edit it. */
export default function FormPage({ id }: { id: string }) {
  useBeginning()
  const query = useAnswer(['workflows', 'form', id], () => api.GET('/api/workflows/{id}', at({ id })))
  return (
    <div className="mx-auto max-w-3xl">
      <BackLink page="workflows" />
      <Queried query={query} lines={6} gone={text.gone}>
        {({ workflow }) => <WorkflowForm key={workflow.version} stored={workflow} />}
      </Queried>
    </div>
  )
}

function WorkflowForm({ stored }: { stored: Schema<'Workflow'> }) {
  const { can } = useSession()
  const { workflow, parameters, fields } = useMemo(() => {
    const { workflow } = parseWorkflow(sourceOf(stored))
    const parameters = parametersFor(workflow, undefined, { runs: workflow.nodes })
    return { workflow, parameters, fields: fieldsOfParameters(parameters) }
  }, [stored])
  const [defaults] = useState(() => firstEntered(fields, parameters, new URLSearchParams()))
  const [entered, setEntered] = useState<Entered>(() =>
    firstEntered(fields, parameters, new URLSearchParams(location.search)),
  )
  const { errors, setErrors, clear, check } = useErrors()
  const start = useMutation({
    mutationFn: async (input_params: Record<string, unknown>) => {
      const body = { input_params, version: stored.version }
      const call = api.POST('/api/workflows/{id}/execute', { params: { path: { id: stored.id } }, body })
      return (await dataOf(call)).execution.id
    },
    onError: failure => {
      const name = failure instanceof ApiFailure ? failure.param?.replace(/^input_params\./, '') : undefined
      if (name !== undefined && parameters.has(name)) setErrors({ [name]: failure.message })
    },
  })
  const run = () => {
    if (start.isPending || !can('user:write')) return
    const { input_params, errors: wrong } = executionOf(fields, parameters, entered)
    if (check(wrong)) start.mutate(input_params)
  }
  const change = (name: string, value: unknown) => {
    setEntered(now => ({ ...now, [name]: value }))
    clear(name)
  }
  return (
    <>
      <PageHeading
        title={stored.name}
        about={stored.description}
        actions={
          <>
            <CopyButton label={text.copyLink} value={linkOf(location.origin + location.pathname, entered, defaults)} />
            <ButtonLink href={`/workflows/${stored.id}`} icon={Pencil} label={text.edit} />
          </>
        }
      />
      {can('user:write') ? (
        <RequestForm title={text.inputs} run={run}>
          {fields.length === 0 && <p className="text-muted">{text.noInputs}</p>}
          <TaskForm fields={fields} entered={entered} change={change} errors={errors} />
          {start.error && Object.keys(errors).length === 0 && <Failed failure={start.error} />}
          <Button primary type="submit" icon={Play} busy={start.isPending} label={text.run} />
        </RequestForm>
      ) : (
        <Notice kind="info">{text.readOnly}</Notice>
      )}
      {start.data !== undefined && <Outcome key={start.data} id={start.data} shown={resultNodes(workflow)} />}
    </>
  )
}

/** What the execution makes, as soon as it is there. */
function Outcome({ id, shown }: { id: string; shown: readonly string[] }) {
  const query = useExecution(id, true)
  const { approvals } = useApprovals(query.data)
  const cancel = useCancel(id)
  return (
    <Section title={text.result}>
      <Queried query={query}>
        {execution => (
          <div className="space-y-4">
            <div className="flex flex-wrap items-center gap-3" aria-live="polite">
              <JobStatus status={execution.status} />
              {execution.duration_ms !== null && (
                <span className="text-muted">{durationText(execution.duration_ms)}</span>
              )}
              <TextLink href={`/executions/${id}`} className="underline" label={text.open} />
              {!hasEnded(execution) && (
                <Button
                  small
                  danger
                  busy={cancel.isPending}
                  onClick={() => cancel.mutate()}
                  label={playgroundText.cancel}
                />
              )}
            </div>
            {execution.error && <Notice kind="bad">{execution.error.cause?.message ?? execution.error.message}</Notice>}
            <ApprovalNotices approvals={approvals} />
            {(execution.nodes ?? [])
              .filter(({ node_id, status }) => shown.includes(node_id) && status === 'completed')
              .map(node => (
                <NodeResult key={node.node_id} execution={id} node={node} named={shown.length > 1} />
              ))}
          </div>
        )}
      </Queried>
    </Section>
  )
}

/** The whole result of a node. */
function NodeResult({ execution, node, named }: { execution: string; node: ExecutionNode; named: boolean }) {
  const { node_id } = node
  const query = useWholeNode(execution, node)
  return (
    <section aria-label={text.resultOf(node_id)} className="bg-surface border-line space-y-2 rounded-lg border p-4">
      {named && <h3 className="font-medium">{node_id}</h3>}
      <Queried query={query}>{({ node }) => <TaskResult result={node.result} inputs={node.resolved_inputs} />}</Queried>
    </section>
  )
}
