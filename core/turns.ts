import { setImmediate as turn } from 'node:timers/promises'

/** Does work that is cut into small steps, all of them. */
export function atOnce<T>(work: Iterator<void, T>): T {
  for (let step = work.next(); ; step = work.next()) if (step.done) return step.value
}

/**
 * Does work that is cut into small steps, and lets the loop serve others whenever `most` milliseconds have gone by. What
 * it looks at must not be changed meanwhile. Rejects with what a step throws.
 */
export async function inTurns<T>(work: Iterator<void, T>, most = 1): Promise<T> {
  let began = performance.now()
  for (let step = work.next(); ; step = work.next()) {
    if (step.done) return step.value
    if (performance.now() - began < most) continue
    await turn()
    began = performance.now()
  }
}
