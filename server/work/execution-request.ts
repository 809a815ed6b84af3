import { z } from 'zod'
import { Dag, ParameterRecord } from '../../core/dag/definition.ts'
import { regions } from '../../core/schemas/region.ts'
import { WorkflowFields } from '../../core/workflows/workflow-fields.ts'
import { webhookFields } from './webhook-terms.ts'

const InputParams = z.record(z.string(), z.unknown()).default({}).describe('Values of the input parameters by name.')

const Terms = z.strictObject({
  input_params: InputParams,
  priority: z
    .union([z.int().min(-100).max(100), z.enum(['low', 'normal', 'high'])])
    .default(0)
    .describe('Priority of its jobs; higher runs earlier. `low` is -10, `normal` 0, `high` 10.'),
  timeout: z
    .int()
    .min(1)
    .max(86_400)
    .optional()
    .describe('Most seconds of the execution. Default: that of the workflow.'),
  metadata: z
    .record(z.string().max(64), z.string().max(512))
    .optional()
    .describe('Your own key-value pairs, by which executions can be listed.'),
  region: z
    .enum(regions)
    .optional()
    .describe('Region in which the execution runs, besides that of the workflow: all models must be there.'),
  ...webhookFields('the end of the execution, whatever its outcome'),
})
/** When and how an execution runs, whatever it executes. */
export type ExecutionTerms = z.output<typeof Terms>

/** A request to execute a stored workflow. */
export const ExecuteRequest = Terms.extend({
  version: z.int().min(1).optional().describe('Version to execute. Default: the newest.'),
}).meta({
  id: 'ExecuteWorkflow',
  description: 'How to execute a workflow.',
})

/** A request to execute the workflow in it. */
export const RunRequest = Terms.extend({
  dag: Dag,
  parameters: ParameterRecord.nullish().describe('The input parameters by name. Default: none declared.'),
  name: WorkflowFields.shape.name.optional().describe('Name for people. Default: `Ad hoc`.'),
  on_failure: WorkflowFields.shape.on_failure,
}).meta({ id: 'RunWorkflow', description: 'A workflow to execute without storing it.' })

/** A request to execute an execution again. */
export const RetryRequest = z
  .strictObject({
    from: z
      .string()
      .max(64)
      .default('failed')
      .describe(
        'Where to begin: `failed` (the nodes that did not complete), `start` (all nodes), or the id of a node (it and the nodes after it).',
      ),
    input_params: z
      .record(z.string(), z.unknown())
      .optional()
      .describe('Values of the input parameters. Default: those of the execution that is retried.'),
  })
  .meta({ id: 'RetryExecution', description: 'What to run again.' })
