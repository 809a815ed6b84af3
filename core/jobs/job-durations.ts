import { movingAverage } from '../moving-average.ts'

/** How long the jobs of each model take, learnt from those that have ended. Milliseconds, null while nothing is known. */
export function openJobDurations() {
  const models = new Map<string, { job: number | null; unit: number | null }>()

  return {
    /** A job of so many units of work ran for so long; null: its size is not known. */
    ran(modelId: string, work: number | null, ms: number): void {
      const perUnit = work === null || work <= 0 ? null : ms / work
      let known = models.get(modelId)
      if (!known) models.set(modelId, (known = { job: null, unit: null }))
      known.job = movingAverage(known.job, ms)
      if (perUnit !== null) known.unit = movingAverage(known.unit, perUnit)
    },
    /** Of a job of that size, or of a usual one where the size is not known. */
    expected(modelId: string, work: number | null): number | null {
      const known = models.get(modelId)
      if (!known) return null
      return work === null || known.unit === null ? known.job : known.unit * work
    },
  }
}
export type JobDurations = ReturnType<typeof openJobDurations>

/** Milliseconds until a run ends. By its own progress where it tells any; null once it takes longer than was expected. */
export function untilDone(
  { progress, ranMs }: { progress: number | null; ranMs: number },
  expectedMs: number | null,
): number | null {
  // The first percent is mostly preparation and says little.
  if (progress !== null && progress >= 0.01) return Math.round((ranMs * (1 - progress)) / progress)
  return expectedMs === null || ranMs > expectedMs ? null : Math.round(expectedMs - ranMs)
}

/**
 * Milliseconds until a job begins: `ahead` others go first in `slots` slots that are all busy, the one that ends next
 * in `freeMs`. Null while it is not known how long jobs take.
 */
export function untilBegun(
  { ahead, slots, freeMs }: { ahead: number; slots: number; freeMs: number | null },
  typicalMs: number | null,
): number | null {
  if (freeMs === 0 && ahead < slots) return 0
  if (typicalMs === null) return null
  return Math.round((freeMs ?? typicalMs / Math.max(1, slots)) + (ahead * typicalMs) / Math.max(1, slots))
}
