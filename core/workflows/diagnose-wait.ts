import type { WorkflowNode } from '../dag/definition.ts'
import type { NodeContext } from './diagnose-node.ts'
import { suggested } from './diagnostics.ts'

/** The time limit of executions of a workflow that has none of its own, seconds. */
export const defaultTimeout = 3_600

/** Validates when a node that waits goes on, and who may answer it. `name`, `fields`: its task and the inputs of that. */
export function diagnoseWait(
  id: string,
  { inputs, for_each }: WorkflowNode,
  { name, fields }: { name: string; fields: readonly string[] },
  { offer, warn, issue }: NodeContext,
): void {
  // Answers name a node, and not one of its items.
  if (for_each !== undefined && name !== 'wait/until')
    issue(
      'value_out_of_range',
      `Node '${id}': ${name} waits for one answer, so it cannot have 'for_each'. Ask once for the whole list.`,
      { path: 'for_each' },
    )
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
  for (const [at, approver] of inputs.approvers.entries()) {
    if (typeof approver !== 'string' || approver.includes('${')) continue
    if (approvers.has(approver) || approvers.has(approver.toLowerCase())) continue
    warn('unknown_approver', `Node '${id}': the organization has no token and no user '${approver}'.`, {
      path: `inputs.approvers[${at}]`,
      ...suggested(approver, approvers),
    })
  }
}
