import { stat } from 'node:fs/promises'
import { objectOf } from '../core/json.ts'
import type { Log } from '../core/log.ts'
import type { Model } from '../core/models/model.ts'
import { movingAverage } from '../core/moving-average.ts'
import { engineKind, openModelFigures, openModelRecords } from './model-figures.ts'
import { type FirstLoad, firstLoad } from './residency/first-load.ts'
import type { ExpectedDurations, PoolDurations } from './residency/model-state.ts'

/**
 * Keeps how long loads take, over restarts, in the data directory: `load-times.json`, for each pool `pool-load-times.json`, and
 * for parked engines `parking.json`.
 */
export function openLoadTimes(options: { dataDir: string; log: Log }) {
  const times = openModelFigures(options, { file: 'load-times.json', names: ['loadMs', 'bytes', 'disk'] })
  const parking = openModelFigures(options, { file: 'parking.json', names: ['parkMs', 'wakeMs', 'cardBytes'] })
  const inPools = openModelRecords(options, { file: 'pool-load-times.json', read: poolTimesOf })
  /** The number of the disk of each model's files, 0 where they are not on this machine. */
  const disks = new Map<string, number>()
  const diskOf = ({ id }: Model): number => disks.get(id) ?? 0
  return {
    /** Finds the disk of the model's files. */
    async locate({ id, source }: Model): Promise<void> {
      disks.set(id, source === undefined ? 0 : ((await stat(source).catch(() => null))?.dev ?? 0))
    },
    /** Milliseconds that loads of the model take with these settings, on average; null before the first. */
    averageMs: (model: Model): number | null => times.of(model)?.loadMs ?? null,
    /** How long a first load should take, by those of other models; null before any. */
    first: (model: Model, bytes: number): FirstLoad | null =>
      firstLoad({ bytes, engine: engineKind(model), disk: diskOf(model) }, times.all()),
    /** Sets what is known of the model from earlier runs where nothing was measured in this one. */
    recall(model: Model, durations: ExpectedDurations): void {
      const { parkMs = null, wakeMs = null } = parking.of(model) ?? {}
      durations.loadMs ??= times.of(model)?.loadMs ?? null
      durations.parkMs ??= parkMs
      durations.wakeMs ??= wakeMs
      durations.inPools = { ...inPools.of(model), ...durations.inPools }
    },
    loadedInPools: (model: Model, durations: Readonly<Record<string, PoolDurations>>): void =>
      inPools.set(model, durations),
    /** What parked engines of the model took, and keep of each card; null before the first was woken. */
    parking: (model: Model) => parking.of(model),
    parked: (model: Model, figures: Record<'parkMs' | 'wakeMs' | 'cardBytes', number>): void =>
      parking.set(model, figures),
    loaded(model: Model, bytes: number, ms: number): void {
      const loadMs = movingAverage(times.of(model)?.loadMs ?? null, ms)
      times.set(model, { loadMs, bytes, disk: diskOf(model) })
    },
  }
}

function poolTimesOf(value: unknown): Record<string, PoolDurations> {
  const known = Object.entries(objectOf(value)).flatMap(([pool, times]) => {
    const { queueMs, loadMs } = objectOf(times)
    if (!Number.isFinite(queueMs) || !Number.isFinite(loadMs)) return []
    return [[pool, { queueMs: Math.round(queueMs as number), loadMs: Math.round(loadMs as number) }] as const]
  })
  return Object.fromEntries(known)
}
