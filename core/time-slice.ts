import { setImmediate as nextIteration } from 'node:timers/promises'

/** Runs all steps of a piece of work without a pause. */
export function runSteps<T>(work: Iterator<void, T>): T {
  for (let step = work.next(); ; step = work.next()) if (step.done) return step.value
}

/**
 * Runs the steps of a piece of work in time slices of `sliceMs` milliseconds and yields to the event loop between them.
 * The data that the steps read must not change meanwhile. Rejects with the error that a step throws.
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
