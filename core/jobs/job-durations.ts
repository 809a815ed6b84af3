import { movingAverage } from '../moving-average.ts'

/** How long the jobs of each model take, averaged over those that have ended. Milliseconds; null if unknown. */
export function openJobDurations() {
  const models = new Map<string, { job: number | null; unit: number | null }>()

  return {
    /** Records that a job with this many units of work ran for this long; null: its size is unknown. */
    ran(modelId: string, work: number | null, ms: number): void {
      const perUnit = work === null || work <= 0 ? null : ms / work
      let known = models.get(modelId)
      if (!known) models.set(modelId, (known = { job: null, unit: null }))
      known.job = movingAverage(known.job, ms)
      if (perUnit !== null) known.unit = movingAverage(known.unit, perUnit)
    },
    /** The expected duration of a job of that size, or of a typical one if the size is unknown. */
    expected(modelId: string, work: number | null): number | null {
      const known = models.get(modelId)
      if (!known) return null
      return work === null || known.unit === null ? known.job : known.unit * work
    },
  }
}
export type JobDurations = ReturnType<typeof openJobDurations>

/** Milliseconds until a run ends, by its own progress if it reports any; null once it takes longer than expected. */
export function untilDone(
  { progress, ranMs }: { progress: number | null; ranMs: number },
  expectedMs: number | null,
): number | null {
  // The first percent is mostly preparation, so it predicts little.
  if (progress !== null && progress >= 0.01) return Math.round((ranMs * (1 - progress)) / progress)
  return expectedMs === null || ranMs > expectedMs ? null : Math.round(expectedMs - ranMs)
}

/**
 * Milliseconds until a job starts: `ahead` others go first in `slots` slots that are all busy; the next one becomes
 * free in `freeMs`. Null if the duration of jobs is unknown.
 */
export function untilBegun(
  { ahead, slots, freeMs }: { ahead: number; slots: number; freeMs: number | null },
  typicalMs: number | null,
): number | null {
  if (freeMs === 0 && ahead < slots) return 0
  if (typicalMs === null) return null
  return Math.round((freeMs ?? typicalMs / Math.max(1, slots)) + (ahead * typicalMs) / Math.max(1, slots))
}
