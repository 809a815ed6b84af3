import type { Api } from '../client/client.ts'
import { printable } from '../terminal/styled-line.ts'

/** Says in a line what a pool has and what engines of this server use of it. */
export function poolText({ name, kind, cards, used_cards, engines, unknown, ...pool }: Api['PoolStatus']): string {
  const limits = [
    ...(pool.max_cards === null ? [] : [`at most ${pool.max_cards} GPUs`]),
    ...(pool.max_engines === null ? [] : [`at most ${pool.max_engines} engines`]),
    ...(pool.cost_per_hour === null ? [] : [`${pool.cost_per_hour} an hour for each GPU`]),
    ...usedText(pool.used_card_hours, pool.monthly_card_hours_limit, 'GPU hours'),
    ...usedText(pool.used_cost, pool.monthly_cost_limit, 'currency units'),
  ]
  const use = `${used_cards} of ${cards} GPUs in use by ${engines} ${engines === 1 ? 'engine' : 'engines'}`
  const reached = pool.limit_reached === null ? [] : [`closed: ${printable(pool.limit_reached)}`]
  const fault = unknown === null ? [] : [`not known now: ${printable(unknown)}`]
  return `pool ${name} (${kind}): ${[use, ...limits, ...reached, ...fault].join(', ')}`
}

const usedText = (used: number, limit: number | null, unit: string): string[] =>
  limit === null ? [] : [`${Number(used.toFixed(2))} of ${limit} ${unit} of this month used`]
