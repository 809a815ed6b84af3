import { Failure } from '../failure.ts'
import type { ModelActivity } from '../models/fleet.ts'
import { retryAfter } from '../retry-after.ts'

/** The failure of a call when the queue of its model is full. */
export const queueFull = (modelId: string, waiting: number, { etaMs }: ModelActivity): Failure =>
  new Failure('queue_full', `${waiting} requests already wait for '${modelId}', which is the limit (max_queue).`, {
    retryAfterMs: retryAfter(etaMs),
  })

/** The failure of a call that waited for a slot until its limit. */
export function waitedTooLong(modelId: string, { status, reason, etaMs }: ModelActivity): Failure {
  const name = `'${modelId}'`
  const more = {
    retryAfterMs: retryAfter(etaMs),
    facts: { eta_seconds: etaMs === null ? null : Math.ceil(etaMs / 1000) },
  }
  if (status === 'loading')
    return new Failure('model_warming_up', `Model ${name} is still loading${about(etaMs)}.`, more)
  if (status === 'warm')
    return new Failure('no_capacity', `All slots of ${name} are busy; none became free in time${about(etaMs)}.`, more)
  return new Failure('no_capacity', reason ?? `Model ${name} could not be loaded in time.`, more)
}

const about = (ms: number | null): string =>
  ms === null ? '' : `; it should take about ${ms < 1500 ? 'a second' : `${Math.round(ms / 1000)} s`}`
