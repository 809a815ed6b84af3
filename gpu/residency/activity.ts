import type { ModelActivity } from '../../core/models/fleet.ts'
import { type BackoffRules, circuitState } from './backoff.ts'
import type { ExpectedWait } from './expected-wait.ts'
import { loadIsKnown, type ModelState, pausedUntil, pauseText, servingResidents } from './model-state.ts'

/**
 * A model's status for users and for the queue. `unfit`: why it fits nowhere on this machine; null when it fits.
 * `expected`: how long its waiting requests should wait; null while nothing waits. `pause`: why it waits for paused devices.
 */
export function activityOf(
  state: ModelState,
  {
    now,
    rules,
    unfit,
    expected,
    pause,
  }: {
    now: number
    rules: BackoffRules
    unfit: string | null
    expected: ExpectedWait | null
    pause: string | null
  },
): ModelActivity {
  const open = circuitState(state.failures, now, rules) === 'open'
  const pauseEnd = pausedUntil(state, now)
  const serving = servingResidents(state)
  const ready = serving.some(resident => resident.state === 'ready')
  const status = !state.model.enabled
    ? 'disabled'
    : ready
      ? 'warm'
      : serving.length > 0
        ? 'loading'
        : open || state.isUnplaceable || unfit !== null
          ? 'unavailable'
          : 'cold'
  return {
    status,
    reason:
      pauseEnd !== null
        ? pauseText(state.model.id, pauseEnd - now)
        : ready
          ? null
          : (pause ?? state.failures?.reason ?? state.reason ?? unfit),
    paused: pause !== null,
    etaMs: expected?.etaMs ?? null,
    retryMs: expected?.retryMs ?? null,
    etaIsMeasured: expected !== null && (pause !== null || loadIsKnown(state)),
    engineStarts: state.engineStarts,
    engineFailures: state.engineFailures,
  }
}
