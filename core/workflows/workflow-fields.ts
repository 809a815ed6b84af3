import { z } from 'zod'
import { Concurrency } from '../dag/concurrency.ts'
import { Budget, Dag, ParameterRecord } from '../dag/definition.ts'
import { regions } from '../schemas/region.ts'

const ignored = z
  .unknown()
  .optional()
  .describe('Set by the server. Ignored in requests, so that a workflow that was read can be sent back.')
/** Fields of a stored workflow that requests cannot change. */
const readOnly = {
  id: ignored,
  object: ignored,
  organization_id: ignored,
  version: ignored,
  created_at: ignored,
  updated_at: ignored,
}

const maxTimeout = 86_400
/** The time limit of executions of a workflow that has none of its own, seconds. */
export const defaultTimeout = 3_600

/** Words by which workflows and executions can be listed. A function, because each use has its own description. */
export const Tags = () => z.array(z.string().trim().min(1).max(64)).max(16)

/** A workflow as clients send it; every field but the name and the graph has a default. */
export const WorkflowFields = z
  .strictObject({
    name: z.string().trim().min(1).max(256).describe('Name of the workflow.'),
    description: z.string().max(4096).nullish().describe('What the workflow is for.'),
    tags: Tags().nullish().describe('Words by which workflows and their executions can be listed, 16 at most.'),
    region: z
      .enum(regions)
      .optional()
      .describe(
        'Region in which its executions run: their models must be there. `Global` asks for none. Default: `Global`.',
      ),
    timeout: z
      .int()
      .min(1)
      .max(maxTimeout)
      .optional()
      .describe(
        `Maximum seconds of an execution, without the time in which it only waits for people, events or times. Default: ${defaultTimeout}.`,
      ),
    on_failure: z
      .enum(['fail_fast', 'continue'])
      .optional()
      .describe(
        '`fail_fast`: the first failure ends the execution. `continue`: nodes that do not depend on the failed one still run. Default: `fail_fast`.',
      ),
    budget: Budget.nullish().describe(
      'The most that an execution may cost, in the currency unit of the prices: a node whose estimate is more than what is left fails before it begins. Default: no limit.',
    ),
    concurrency: Concurrency.nullish().describe(
      'How many executions run at once. Applies to executions of all versions. Default: any number.',
    ),
    parameters: ParameterRecord.nullish().describe(
      'The input parameters by name. Default: none declared; an execution then accepts any.',
    ),
    dag: Dag.describe('The nodes and edges.'),
    ...readOnly,
  })
  .meta({ id: 'WorkflowFields', description: 'The definition of a workflow.' })
export type WorkflowFields = z.output<typeof WorkflowFields>
