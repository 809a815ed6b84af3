import type { Concurrency } from './concurrency.ts'

/** The most executions of one workflow that wait for others. */
export const maxQueued = 10_000

/** What becomes of a new execution of a workflow; `cancel`: how many of the oldest executions end for it. */
export type Admittance = { how: 'start'; cancel: number } | { how: 'queue' | 'refuse' | 'queue_full' }

/** Decides whether a new execution starts while so many others of its workflow run and wait. */
export function admittanceOf(
  { limit, when_reached }: Concurrency,
  { running, queued }: { running: number; queued: number },
): Admittance {
  if (when_reached === 'cancel_oldest') return { how: 'start', cancel: Math.max(0, running + queued - limit + 1) }
  if (running < limit && queued === 0) return { how: 'start', cancel: 0 }
  if (when_reached === 'refuse') return { how: 'refuse' }
  return { how: queued < maxQueued ? 'queue' : 'queue_full' }
}
