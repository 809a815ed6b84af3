import { canonicalHash } from '../../core/canonical.ts'
import type { WorkflowDefinition } from '../../core/store/workflows.ts'
import type { ExecutionOptions } from '../../core/workflows/executions.ts'
import type { Call } from '../http/request/call.ts'
import { idempotencyOf } from '../http/request/idempotency.ts'
import type { Owners } from '../http/request/owners.ts'
import { askForRegion } from '../http/request/region.ts'
import { offerFor } from '../views/workflow-record.ts'
import type { ExecutionTerms } from './execution-request.ts'
import { executionWebhookTypes, webhookInBody } from './webhook-terms.ts'

const priorities = { low: -10, normal: 0, high: 10 } as const

/** Returns the options of an execution of this definition. */
export const executionOptionsOf = (
  call: Call,
  definition: WorkflowDefinition,
  workflow: ExecutionOptions['workflow'],
  terms: ExecutionTerms,
  owners: Pick<Owners, 'admission' | 'config' | 'registry' | 'webhooks'>,
): ExecutionOptions => {
  askForRegion(call, terms.region)
  const retention = owners.config.limits.job_retention
  // An idempotency key covers the body and the path, and not the current version of the workflow.
  const { bodyHash, params } = call
  call.bodyHash = canonicalHash([params, bodyHash ?? null])
  return {
    requester: call.caller,
    workflow,
    definition,
    inputParams: terms.input_params,
    priority: typeof terms.priority === 'string' ? priorities[terms.priority] : terms.priority,
    timeout: terms.timeout,
    retentionMs: retention === 0 ? null : retention,
    metadata: terms.metadata ? JSON.stringify(terms.metadata) : null,
    idempotency: idempotencyOf(call, undefined),
    origin: call.origin,
    webhook: webhookInBody(terms, call, executionWebhookTypes, owners) ?? null,
    offer: offerFor(call, owners),
  }
}
