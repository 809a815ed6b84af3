import type { WorkflowNode } from '../dag/definition.ts'
import { defaultWaitSeconds } from '../schemas/waits.ts'
import type { NodeContext } from './diagnose-node.ts'
import { suggested } from './diagnostics.ts'

/** Validates how long a node waits, and who may answer it. `name`, `fields`: its task and the inputs of that. */
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
  if (fields.includes('timeout') && inputs.timeout === undefined)
    warn(
      'unbounded_wait',
      `Node '${id}' waits without a 'timeout': if nothing ends it, it fails after ${defaultWaitSeconds / 86_400} days.`,
      { path: 'inputs.timeout' },
    )
  const { approvers } = offer
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
