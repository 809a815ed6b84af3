import { z } from 'zod'
import { Dag, ParameterRecord } from '../dag/definition.ts'
import { regions } from '../store/workflows.ts'

const ignored = z
  .unknown()
  .optional()
  .describe('Set by the server; ignored, so that a workflow that was read can be sent back.')
/** Members of a stored workflow that no request changes. */
const readOnly = {
  id: ignored,
  object: ignored,
  organization_id: ignored,
  version: ignored,
  created_at: ignored,
  updated_at: ignored,
}

const longestTimeout = 86_400

/** What a workflow is made of, as it is sent; every field but the name and the graph has a default. */
export const WorkflowFields = z
  .strictObject({
    name: z.string().trim().min(1).max(256),
    description: z.string().max(4096).nullish(),
    region: z.enum(regions).optional().describe('A label: this server has no regions of its own.'),
    timeout: z.int().min(1).max(longestTimeout).optional().describe('Seconds that a run may take; 3600 when absent.'),
    on_failure: z
      .enum(['fail_fast', 'continue'])
      .optional()
      .describe('Whether the first failure ends what has not begun, or only what comes after it.'),
    parameters: ParameterRecord.nullish().describe(
      'What may be given to a run. Where nothing is declared, anything may be.',
    ),
    dag: Dag,
    ...readOnly,
  })
  .meta({ id: 'WorkflowFields' })
export type WorkflowFields = z.output<typeof WorkflowFields>
