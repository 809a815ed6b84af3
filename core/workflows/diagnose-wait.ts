import type { WorkflowNode } from '../dag/definition.ts'
import { defaultWaitSeconds } from '../schemas/waits.ts'
import type { NodeContext } from './diagnose-node.ts'
import { suggested } from './diagnostics.ts'

/** Validates how long a node waits, and who may answer it. `fields`: the inputs of its task. */
export function diagnoseWait(
  id: string,
  { inputs }: WorkflowNode,
  fields: readonly string[],
  { offer, warn }: Pick<NodeContext, 'offer' | 'warn'>,
): void {
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
