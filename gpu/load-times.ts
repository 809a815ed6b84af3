import type { Log } from '../core/log.ts'
import type { Model } from '../core/models/model.ts'
import { movingAverage } from '../core/moving-average.ts'
import { openModelFigures } from './model-figures.ts'
import { startMs } from './residency/model-state.ts'

/** Loads of smaller models tell nothing about the speed of the disk. */
const largeBytes = 2 ** 30

/** Keeps how long loads take, over restarts: `load-times.json` in the data directory. */
export function openLoadTimes(options: { dataDir: string; log: Log }) {
  const times = openModelFigures(options, { file: 'load-times.json', names: ['loadMs', 'bytes'] })
  return {
    /** Milliseconds that loads of the model take with these settings, on average; null before the first. */
    averageMs: (model: Model): number | null => times.of(model)?.loadMs ?? null,
    /** Milliseconds that a first load should take: as long for each byte as other large models have; null before any. */
    estimateMs(bytes: number): number | null {
      const large = times.all().filter(one => one.bytes >= largeBytes)
      if (large.length === 0 || bytes === 0) return null
      const readMs = large.reduce((sum, { loadMs }) => sum + Math.max(0, loadMs - startMs), 0)
      return startMs + (readMs / large.reduce((sum, one) => sum + one.bytes, 0)) * bytes
    },
    loaded(model: Model, bytes: number, ms: number): void {
      times.set(model, { loadMs: movingAverage(times.of(model)?.loadMs ?? null, ms), bytes })
    },
  }
}
