import { z } from 'zod'
import { canonicalHash } from '../../core/canonical.ts'
import { Budget, Dag, maxNodes, ParameterRecord, Pin } from '../../core/dag/definition.ts'
import {
  nullish,
  optional,
  optionalBoolean,
  optionalObject,
  optionalOneOf,
  optionalStringUpTo,
  strictObject,
} from '../../core/schemas/fields.ts'
import { regions } from '../../core/schemas/region.ts'
import type { WorkflowDefinition } from '../../core/store/workflows.ts'
import type { ExecutionOptions } from '../../core/workflows/executions.ts'
import type { RetryFrom } from '../../core/workflows/kept-work.ts'
import { offerFor } from '../../core/workflows/offer.ts'
import type { Selection } from '../../core/workflows/selection.ts'
import { Tags, WorkflowFields } from '../../core/workflows/workflow-fields.ts'
import type { ClientExchange } from '../http/request/exchange.ts'
import { idempotencyOf } from '../http/request/idempotency.ts'
import type { Owners } from '../http/request/owners.ts'
import { askForRegion } from '../http/request/region.ts'
import { distinct } from '../views/workflow-record.ts'
import { executionWebhookTypes, Metadata, Priority, priorityOf, webhookFields, webhookInBody } from './job-terms.ts'

/** Returns the options of an execution of this definition. */
export const executionOptionsOf = (
  exchange: ClientExchange,
  definition: WorkflowDefinition,
  workflow: ExecutionOptions['workflow'],
  terms: ExecutionTerms,
  owners: Owners<'admission' | 'config' | 'registry' | 'webhooks' | 'workflows'>,
): ExecutionOptions => {
  askForRegion(exchange, terms.region)
  const retention = owners.config.limits.job_retention
  // An idempotency key covers the body and the path, and not the current version of the workflow.
  const { bodyHash, params } = exchange
  exchange.bodyHash = canonicalHash([params, bodyHash ?? null])
  return {
    requester: exchange.caller,
    workflow,
    definition: terms.tags ? { ...definition, tags: distinct(terms.tags) } : definition,
    inputParams: terms.input_params,
    selection: selectionOf(terms),
    priority: priorityOf(terms.priority),
    timeout: terms.timeout,
    budget: terms.budget,
    retentionMs: retention === 0 ? null : retention,
    metadata: terms.metadata ? JSON.stringify(terms.metadata) : null,
    idempotency: idempotencyOf(exchange, undefined),
    origin: exchange.origin,
    traceparent: exchange.traceparent ?? null,
    webhook: webhookInBody(terms, exchange, executionWebhookTypes, owners) ?? null,
    offer: offerFor(exchange.caller, owners),
  }
}

const InputParams = z.record(z.string(), z.unknown()).default({}).describe('Values of the input parameters by name.')

/** The fields with which a request chooses the nodes that run. */
const selectionFields = {
  only: optional(
    z.array(z.string().max(64)).min(1).max(maxNodes),
    'Run exactly these nodes. Other nodes to whose results they refer must be pinned. Excludes `to`.',
  ),
  to: optionalStringUpTo(64, 'Run this node and those before it, except those that only pinned nodes need.'),
  pins: optional(
    z.record(z.string().max(64), Pin()),
    'Results by node, as `result` of the node in an execution shows them. A pinned node does not run and costs nothing. Null: the node runs although the workflow has a pin for it.',
  ),
  use_pins: optionalBoolean('Whether the pins of the workflow count. Default: false, its nodes run.'),
}
/** The selection of a request. */
export const selectionOf = ({
  only,
  to,
  pins,
  use_pins,
}: z.output<z.ZodObject<typeof selectionFields>>): Selection => ({ only, to, pins, usePins: use_pins })

const Terms = z.strictObject({
  input_params: InputParams,
  ...selectionFields,
  priority: Priority.describe('Priority of its jobs; higher runs earlier. `low` is -10, `normal` 0, `high` 10.'),
  timeout: optional(
    z.int().min(1).max(86_400),
    'Most seconds of the execution, without the time in which it only waits for people, events or times. Default: that of the workflow.',
  ),
  tags: nullish(Tags(), 'Words by which executions can be listed, 16 at most. Default: those of the workflow.'),
  budget: optional(
    Budget,
    'The most that the execution may cost, in the currency unit of the prices. Default: that of the workflow.',
  ),
  metadata: optional(Metadata, 'Your own key-value pairs, by which executions can be listed.'),
  region: optionalOneOf(
    'Region in which the execution runs, besides that of the workflow: all models must be there.',
    regions,
  ),
  ...webhookFields('the end of the execution, whatever its outcome'),
})
/** When and how an execution runs, whatever it executes. */
export type ExecutionTerms = z.output<typeof Terms>

export const ExecuteRequest = Terms.extend({
  version: optional(z.int().min(1), 'Version to execute. Default: the newest.'),
}).meta({
  id: 'ExecuteWorkflow',
  description: 'How to execute a workflow.',
})

/** A request to execute the workflow in it. */
export const RunRequest = Terms.extend({
  dag: Dag,
  parameters: nullish(ParameterRecord, 'The input parameters by name. Default: none declared.'),
  name: optional(WorkflowFields.shape.name, 'Name for people. Default: `Ad hoc`.'),
  on_failure: WorkflowFields.shape.on_failure,
}).meta({ id: 'RunWorkflow', description: 'A workflow to execute without storing it.' })

/** A request to estimate an execution of a stored workflow. */
export const EstimateRequest = z
  .strictObject({
    input_params: InputParams,
    version: optional(z.int().min(1), 'Version to estimate. Default: the newest.'),
    ...selectionFields,
  })
  .meta({ id: 'EstimateWorkflow', description: 'The execution to estimate.' })

/** A request to estimate an execution of the workflow in it. */
export const EstimateDefinition = z
  .strictObject({
    dag: Dag,
    parameters: nullish(ParameterRecord, 'The input parameters by name. Default: none declared.'),
    input_params: InputParams,
    ...selectionFields,
  })
  .meta({ id: 'EstimateWorkflowDefinition', description: 'A workflow and the execution of it to estimate.' })

/** A request to execute an execution again. */
export const RetryRequest = strictObject('RetryExecution', 'What to run again.', {
  from: optionalStringUpTo(
    64,
    'Where to begin: `failed` (the nodes that did not complete, and items that failed), `start` (all nodes), or the id of a node (it and the nodes after it). Default: `failed`, and the nodes of `changes`.',
  ),
  changes: optionalObject('What the new execution does differently. Nodes that keep their results cannot be changed.', {
    nodes: z
      .record(
        z.string().max(64),
        z.strictObject({
          inputs: optional(
            z.record(z.string(), z.unknown()),
            'Inputs to replace, by name; null removes one. The others stay.',
          ),
          model_id: optionalStringUpTo(128, 'Id of another model.'),
        }),
      )
      .describe('The changes by node.'),
  }),
  input_params: optional(
    z.record(z.string(), z.unknown()),
    'Values of the input parameters. Default: those of the execution that is retried.',
  ),
})

/** Where a retry begins; undefined if the request leaves it out. */
export const retryFromOf = (from: string | undefined): RetryFrom | undefined =>
  from === undefined || from === 'failed' || from === 'start' ? from : { node: from }
