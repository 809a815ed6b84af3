import type { WorkflowNode } from '../dag/definition.ts'
import type { NodeContext } from './diagnose-node.ts'
import { suggested } from './diagnostics.ts'

/** The time limit of executions of a workflow that has none of its own, seconds. */
export const defaultTimeout = 3_600

/** Validates when a node that waits goes on, and who may answer it. `fields`: the inputs that its task knows. */
export function diagnoseWait(
  id: string,
  { inputs }: WorkflowNode,
  fields: readonly string[],
  { offer, warn }: NodeContext,
): void {
  const { timeout: limit = defaultTimeout, approvers } = offer
  const field = fields.includes('timeout') ? 'timeout' : 'seconds'
  const wait = inputs[field]
  if (wait === undefined && field === 'timeout')
    warn(
      'unbounded_wait',
      `Node '${id}' waits without a 'timeout': if nothing ends it, the whole execution times out after ${limit} s.`,
      { path: 'inputs.timeout' },
    )
  else if (typeof wait === 'number' && wait >= limit)
    warn(
      'unbounded_wait',
      `Node '${id}' waits up to ${wait} s, and the execution times out after ${limit} s. Raise the 'timeout' of the workflow.`,
      { path: `inputs.${field}` },
    )
  if (!approvers || !Array.isArray(inputs.approvers)) return
  for (const [at, name] of inputs.approvers.entries())
    if (typeof name === 'string' && !name.includes('${') && !approvers.has(name) && !approvers.has(name.toLowerCase()))
      warn('unknown_approver', `Node '${id}': the organization has no token and no user '${name}'.`, {
        path: `inputs.approvers[${at}]`,
        ...suggested(name, approvers),
      })
}
