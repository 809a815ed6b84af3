import type { Log } from '../core/log.ts'
import type { Model } from '../core/models/model.ts'
import { openModelFigures } from './model-figures.ts'
import { useMargin } from './placement/card-use.ts'
import type { ModelState, Resident } from './residency/model-state.ts'
import { placementAs } from './residency/new-resident.ts'

/** A booking that differs from the measurement by more than this share is reported. */
const driftShare = 1 / 8

/** What an engine of a model used, and what was estimated for it. */
export interface MeasuredMemory {
  bytes: number
  estimate: number
}

/** Keeps the memory that engines used, over unloads and restarts: `measured-memory.json` in the data directory. */
export function openMeasuredMemory(options: { dataDir: string; log: Log }) {
  const { log } = options
  const figures = openModelFigures(options, { file: 'measured-memory.json', names: ['bytes', 'estimate'] })
  /** The newest engine of each model of which the memory was measured. Ids of engines ascend. */
  const newest = new Map<string, string>()
  const reported = new WeakSet<Resident>()

  /** Logs once for each engine that its booking differs from what it uses. To be called before that is corrected. */
  function reportDrift(resident: Resident, bytes: number): void {
    const { engineId, serves, bytes: booked } = resident
    if (Math.abs(bytes - booked) <= Math.max(useMargin, booked * driftShare) || reported.has(resident)) return
    reported.add(resident)
    const fields = {
      model: serves.model.id,
      engine: engineId,
      booked_bytes: Math.round(booked),
      used_bytes: Math.round(bytes),
    }
    if (bytes > booked) log.warn('An engine uses more memory than was booked for it', fields)
    else log.info('An engine uses less memory than was booked for it', fields)
  }

  return {
    /** What the model used with these settings; null if that was not measured. */
    remembered: (model: Model): MeasuredMemory | null => figures.of(model),
    reportDrift,
    /** Remembers the most that an engine used, in place of what earlier engines of its model used. */
    remember(resident: Resident, bytes: number): void {
      const { engineId, serves, placement } = resident
      const { model, retired } = serves
      if (retired) return
      const before = figures.of(model)
      const isNewer = engineId > (newest.get(model.id) ?? '')
      if (!isNewer && before && bytes <= before.bytes + useMargin) return
      if (isNewer) newest.set(model.id, engineId)
      const estimate = Math.round(placement.estimate ?? placement.bytes)
      const isKnown = before?.estimate === estimate && Math.abs(before.bytes - bytes) <= useMargin
      if (!isKnown) figures.set(model, { bytes, estimate })
    },
  }
}

/** Bytes that engines of a model used more than was estimated for them. */
export const excessOf = (measured: MeasuredMemory | null): number =>
  measured ? Math.max(0, measured.bytes - measured.estimate) : 0

/**
 * What to book for an estimate: the excess of earlier engines besides. Never more than `limit`, what the devices have for it
 * alone, unless the estimate is: no model is refused by what was measured, which may include what another program began to
 * use meanwhile.
 */
export const bookedBytes = (estimate: number, excess: number, limit: number): number =>
  Math.max(estimate, Math.min(limit, estimate + excess))

/** The placement with what earlier engines of the model used more than was estimated. `largest`: see `bookedBytes`. */
export function withExcess(
  sized: ModelState['placement'],
  excess: number,
  largest: (placement: ModelState['placement']) => number,
): ModelState['placement'] {
  const booked = (placement: ModelState['placement']) => bookedBytes(placement.bytes, excess, largest(placement))
  const { longer } = sized
  const bytes = booked(sized)
  return {
    ...sized,
    bytes,
    bytesFrom: bytes > sized.bytes ? 'measured' : sized.bytesFrom,
    estimate: sized.bytes,
    longer: longer && {
      ...longer,
      layout: { ...longer.layout, bytes: booked(placementAs(sized, { longer, pool: sized.pool })) },
    },
  }
}
