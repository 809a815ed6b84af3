import { useMemo, useState } from 'react'
import type { Schema } from '../../api/client.ts'
import { useNames } from '../../api/names.ts'
import { JobStatus } from '../../components/badge.tsx'
import { Button, TextLink } from '../../components/button.tsx'
import { Facts, Notice, Queried, Section } from '../../components/page.tsx'
import { InputsView } from '../../components/result/inputs-view.tsx'
import { TaskResult } from '../../components/result/task-result.tsx'
import { Time } from '../../components/time.tsx'
import { approvalsText as text } from '../../text/approvals.ts'
import { executionsText } from '../../text/executions.ts'
import { taskName } from '../../text/tasks.ts'
import { graphOfExecution } from '../executions/graph-of-execution.ts'
import { type Execution, type ExecutionNode, useExecution, useWholeNode } from '../executions/use-execution.ts'
import { nodesBefore } from './nodes-before.ts'

type Approval = Pick<Schema<'Approval'>, 'execution_id' | 'node_id'>

/** Nodes that are shown at once, those nearest to the approval first: each is read with its result. */
const nodesAtOnce = 12
const noNodes: readonly ExecutionNode[] = []

/** What led to an approval: who started the execution and with what, and the results of the nodes before. */
export function ApprovalContext({ approval: { execution_id, node_id } }: { approval: Approval }) {
  const query = useExecution(execution_id)
  return (
    <Section title={text.context}>
      <Queried query={query} lines={4}>
        {execution => <Shown execution={execution} node={node_id} />}
      </Queried>
    </Section>
  )
}

function Shown({ execution, node }: { execution: Execution; node: string }) {
  const { organization_id, token_id, created_at, input_params, nodes = noNodes } = execution
  const names = useNames(organization_id, [token_id])
  const [most, setMost] = useState(nodesAtOnce)
  const before = useMemo(() => {
    const byId = new Map(nodes.map(one => [one.node_id, one]))
    return nodesBefore(graphOfExecution(execution).edges, node).flatMap(id => byId.get(id) ?? [])
  }, [execution, nodes, node])
  const left = before.length - most
  return (
    <div className="space-y-4">
      <Facts
        className="grid grid-cols-[auto_1fr] gap-x-4 gap-y-1"
        rows={[
          [text.startedBy, names.get(token_id) ?? token_id],
          [text.started, <Time key="at" at={created_at} />],
        ]}
      />
      {Object.keys(input_params).length > 0 && (
        <div>
          <h3 className="mb-1 font-medium">{text.parameters}</h3>
          <InputsView inputs={input_params} />
        </div>
      )}
      {before.length === 0 ? (
        <p className="text-muted">{text.nothingBefore}</p>
      ) : (
        before.slice(0, most).map(one => <Before key={one.node_id} execution={execution.id} node={one} />)
      )}
      {left > 0 && <Button onClick={() => setMost(most + nodesAtOnce)} label={text.moreBefore(left)} />}
    </div>
  )
}

/** A node before the approval, with its result; its inputs are folded. */
function Before({ execution, node }: { execution: string; node: ExecutionNode }) {
  const query = useWholeNode(execution, node)
  return (
    <section aria-label={text.before(node.node_id)} className="border-line bg-surface min-w-0 rounded-lg border p-3">
      <h3 className="mb-2 flex flex-wrap items-baseline gap-x-2 font-medium">
        {node.node_id}
        <span className="text-muted text-xs font-normal">{taskName(node.task)}</span>
        {node.status !== 'completed' && <JobStatus status={node.status} />}
        {node.job_id !== null && (
          <TextLink href={`/jobs/${node.job_id}`} className="ml-auto text-xs font-normal" label={text.job} />
        )}
      </h3>
      {node.error && <Notice kind="bad">{node.error.message}</Notice>}
      {node.skip_reason && <Notice kind="info">{executionsText.skipReasons[node.skip_reason]}</Notice>}
      <Queried query={query}>
        {({ node: { result, resolved_inputs: inputs } }) => (
          <>
            {(result ?? null) !== null ? (
              <TaskResult result={result} inputs={inputs} />
            ) : (
              node.status === 'completed' && <p className="text-muted">{text.noResult}</p>
            )}
            {(inputs ?? null) !== null && (
              <details className="mt-2">
                <summary className="text-muted text-xs">{text.inputs}</summary>
                <InputsView inputs={inputs} />
              </details>
            )}
          </>
        )}
      </Queried>
    </section>
  )
}
