import { z } from 'zod'

/** How many executions of a workflow may run at once, and what becomes of further ones. */
export const Concurrency = z
  .strictObject({
    limit: z.int().min(1).max(10_000).describe('The most executions of the workflow that run at once.'),
    when_reached: z
      .enum(['queue', 'refuse', 'cancel_oldest'])
      .default('queue')
      .describe(
        '`queue`: a further execution is `pending` until one has ended. `refuse`: it is refused with 409 `conflict`. `cancel_oldest`: the oldest one is cancelled for it. Default: `queue`.',
      ),
  })
  .meta({ id: 'WorkflowConcurrency', description: 'How many executions of a workflow run at once.' })
export type Concurrency = z.output<typeof Concurrency>
