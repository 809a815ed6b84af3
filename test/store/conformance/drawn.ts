import { newId } from '../../../core/ids.ts'
import type { NewExecution, NewExecutionNode, NewWorkflow } from '../../../core/store/workflows.ts'
import { organizationId } from './records.ts'

const node = () => ({
  model_id: 'tiny-chat',
  task: 'std/chat-completion',
  inputs: {},
  outputs: [],
  on_error: 'fail' as const,
})

export const newWorkflow = (workflow: Partial<NewWorkflow> = {}): NewWorkflow => ({
  id: newId('wf'),
  organizationId,
  createdAt: 1_700_000_000_000,
  name: 'A workflow',
  description: null,
  tags: [],
  region: 'Global',
  timeout: 60,
  onFailure: 'fail_fast',
  parameters: null,
  dag: { nodes: { a: node() }, edges: [] },
  ...workflow,
})

export interface Drawn {
  /** By name: the successors. */
  nodes: Record<string, string[]>
  /** Nodes with on_error continue. */
  borne?: string[]
  onFailure?: 'fail_fast' | 'continue'
  /** The job whose result a node reuses. */
  reuses?: Record<string, string>
}

/** An execution of the drawn graph. Its jobs have their own model, so that tests do not claim each other's. */
export function newExecution(
  { nodes, borne = [], onFailure = 'fail_fast', reuses = {} }: Drawn,
  more: Partial<NewExecution> = {},
): NewExecution & { modelId: string } {
  const names = Object.keys(nodes)
  const modelId = newId('evt')
  const edges = names.flatMap(from => nodes[from]!.map(to => ({ from, to })))
  return {
    modelId,
    id: newId('exec'),
    organizationId,
    tokenId: 'tok_test',
    workflowId: null,
    workflowVersion: null,
    definition: newWorkflow({
      onFailure,
      dag: { nodes: Object.fromEntries(names.map(name => [name, node()])), edges },
    }),
    inputParams: {},
    priority: 0,
    timeoutMs: 60_000,
    retentionMs: null,
    metadata: null,
    parentExecutionId: null,
    origin: '',
    createdAt: Date.now(),
    nodes: names.map(
      (name): NewExecutionNode => ({
        nodeId: name,
        task: 'std/chat-completion',
        modelId,
        successors: nodes[name]!.map(after => names.indexOf(after)),
        predecessors: edges.filter(({ to }) => to === name).length,
        direct: true,
        onError: borne.includes(name) ? 'continue' : 'fail',
        maxAttempts: 2,
        timeoutMs: null,
        jobId: newId('job'),
        reuses: reuses[name] ?? null,
      }),
    ),
    idempotency: null,
    ...more,
  }
}
