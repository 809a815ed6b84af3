import { z } from 'zod'
import { Bytes, Duration } from '../quantities.ts'

/** Limits of a pool, and its price. `more`: the other keys of the file in each example. */
export const limitFields = (more: { pools: { team: object } }) => ({
  max_cards: z.int().min(1).max(100_000).optional().meta({
    description: 'GPUs that all engines of this server in the pool may use together.',
    unit: 'GPUs',
    example: 8,
    with: more,
    absent: 'all that the pool has',
  }),
  max_engines: z.int().min(1).max(100_000).optional().meta({
    description: 'Engines of this server that may run in the pool at a time.',
    unit: 'engines',
    example: 4,
    with: more,
    absent: 'no limit',
  }),
  orphan_grace: Duration.default(900_000).meta({
    description:
      'Time after which an engine of the pool ends by itself, if this server is gone and nobody takes the engine over.',
    example: '30m',
    with: more,
  }),
  cost_per_hour: z.number().min(0).max(1e6).optional().meta({
    description: 'What a GPU of the pool costs in an hour, in units of `currency`.',
    unit: 'currency units',
    example: 1.2,
    with: more,
    absent: 'none: no cost is shown',
  }),
  monthly_card_hours_limit: z.number().positive().max(1e9).optional().meta({
    description:
      'GPU hours that engines of this server may use of the pool in a calendar month (UTC). At the limit they end after their requests, and no other starts there until the next month.',
    unit: 'hours',
    example: 100,
    with: more,
    absent: 'no limit',
  }),
  monthly_cost_limit: z
    .number()
    .positive()
    .max(1e9)
    .optional()
    .meta({
      description:
        'The same as a cost: GPU hours at `cost_per_hour`, which must be set, in units of `currency`. Hours that were counted at another price keep that.',
      unit: 'currency units',
      example: 120,
      with: { pools: { team: { ...more.pools.team, cost_per_hour: 1.2 } } },
      absent: 'no limit',
    }),
})

/** The kinds of pools that have a launcher. */
export const kindOf = <Kind extends 'slurm' | 'kubernetes' | 'ssh'>(name: Kind, more: object) =>
  z.literal(name).meta({
    description:
      'What the pool is: `slurm`, a cluster of which each engine is a job, `kubernetes`, one of which each engine is a pod, or `ssh`, one machine.',
    example: name,
    with: more,
  })

/** The memory of a GPU of a cluster. */
export const cardMemory = (more: object) =>
  Bytes.meta({
    description:
      '`slurm` and `kubernetes` only: memory of a GPU, which a cluster does not tell. Models are sized for it.',
    example: '80GiB',
    with: more,
  })
