import { setImmediate as nextIteration } from 'node:timers/promises'

/** Runs work that is divided into small steps to its end, in one piece. */
export function runSteps<T>(work: Iterator<void, T>): T {
  for (let step = work.next(); ; step = work.next()) if (step.done) return step.value
}

/**
 * Runs work that is divided into small steps in time slices of `sliceMs` milliseconds, and lets the event loop serve
 * others between them. The data that it reads must not change meanwhile. Rejects with what a step throws.
 */
export async function inTimeSlices<T>(work: Iterator<void, T>, sliceMs = 1): Promise<T> {
  let began = performance.now()
  for (let step = work.next(); ; step = work.next()) {
    if (step.done) return step.value
    if (performance.now() - began < sliceMs) continue
    await nextIteration()
    began = performance.now()
  }
}
