import type { z } from 'zod'
import type { PoolSnapshot } from '../../core/models/pools.ts'
import {
  integer,
  namedObject,
  nullableInteger,
  nullableNumber,
  nullableString,
  number,
  oneOf,
  string,
} from '../../core/schemas/fields.ts'
import { viewOf } from './view-of.ts'

/** One pool in `GET /api/system/status` and `GET /api/gpu`. */
export const PoolStatus = namedObject(
  'PoolStatus',
  'A pool of machines besides this one: see `pools` of `infer.yaml`.',
  {
    name: string('Name of the pool.'),
    kind: oneOf(
      '`slurm`: a cluster, of which each engine is a job. `kubernetes`: a cluster, of which each engine is a pod. `ssh`: one machine.',
      ['slurm', 'kubernetes', 'ssh'],
    ),
    cards: integer('GPUs that it has, as far as it has told.'),
    used_cards: integer('GPUs that engines of this server use, or wait for.'),
    engines: integer('Engines of this server there, those that wait for a machine included.'),
    max_cards: nullableInteger('Most GPUs that engines of this server may use; null if there is no limit.'),
    max_engines: nullableInteger('Most engines of this server; null if there is no limit.'),
    cost_per_hour: nullableNumber(
      'What one GPU costs in an hour, in the currency of the prices; null if that is not set.',
    ),
    used_card_hours: number('GPU hours that engines of this server have used in this calendar month (UTC).'),
    used_cost: number('What these cost at `cost_per_hour`, in the currency of the prices.'),
    monthly_card_hours_limit: nullableNumber('Most GPU hours of a calendar month; null if there is no limit.'),
    monthly_cost_limit: nullableNumber('Most cost of a calendar month; null if there is no limit.'),
    limit_reached: nullableString(
      'Which limit of the month is reached, and when the pool opens again, as a sentence: until then no engine starts on its GPUs. Null if none is.',
    ),
    unknown: nullableString(
      'Why it is not known what it has now, as a sentence: its engines run on, and no others start there. Null if it is known.',
    ),
  },
)

/** A pool in the shape of the API. */
export const poolStatus = (pool: PoolSnapshot): z.input<typeof PoolStatus> =>
  viewOf(PoolStatus, pool, {
    used_cards: pool.usedCards,
    max_cards: pool.maxCards,
    max_engines: pool.maxEngines,
    cost_per_hour: pool.costPerHour,
    used_card_hours: pool.usedCardHours,
    used_cost: pool.usedCost,
    monthly_card_hours_limit: pool.monthlyCardHoursLimit,
    monthly_cost_limit: pool.monthlyCostLimit,
    limit_reached: pool.limitReached,
  })
