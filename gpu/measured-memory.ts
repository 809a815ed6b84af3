import { createHash } from 'node:crypto'
import { mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { version } from '../core/assets.ts'
import { objectOf } from '../core/json.ts'
import type { Log } from '../core/log.ts'
import { needsNewEngine } from '../core/models/change.ts'
import type { Model } from '../core/models/model.ts'
import { optionalJson } from '../core/optional-file.ts'
import { useMargin } from './placement/card-use.ts'
import type { Resident } from './residency/model-state.ts'

/** Models whose memory is kept; those that were measured longest ago are forgotten first. */
const maxModels = 500
/** A booking that differs from the measurement by more than this share is reported. */
const driftShare = 1 / 8

/** What an engine of a model used, and what was estimated for it. */
export interface MeasuredMemory {
  bytes: number
  estimate: number
}

interface Entry extends MeasuredMemory {
  /** Of the settings that its engine was started with, and of this version. */
  settings: string
}

/** Identifies the settings of a model that concern its engine, and the version of the engines that infer brings. */
function settingsOf(model: Model): string {
  const fields = Object.entries(model).filter(([field]) => needsNewEngine(field))
  const text = JSON.stringify([version, fields.toSorted(([a], [b]) => (a < b ? -1 : 1))])
  return createHash('sha256').update(text).digest('base64url').slice(0, 22)
}

/** Keeps the memory that engines used, over unloads and restarts: `measured-memory.json` in the data directory. */
export function openMeasuredMemory({ dataDir, log }: { dataDir: string; log: Log }) {
  const path = join(dataDir, 'measured-memory.json')
  const entries = new Map(Object.entries(objectOf(optionalJson(path))).filter(isEntry))
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

  function write(): void {
    try {
      mkdirSync(dataDir, { recursive: true })
      writeFileSync(`${path}.new`, JSON.stringify(Object.fromEntries(entries)))
      renameSync(`${path}.new`, path)
    } catch (thrown) {
      log.warn('The measured memory could not be stored', { path }, thrown)
    }
  }

  return {
    /** What the model used with these settings; null if that was not measured. */
    remembered(model: Model): MeasuredMemory | null {
      const own = entries.get(model.id)
      return own?.settings === settingsOf(model) ? { bytes: own.bytes, estimate: own.estimate } : null
    },
    reportDrift,
    /** Remembers the most that an engine used, in place of what earlier engines of its model used. */
    remember(resident: Resident, bytes: number): void {
      const { engineId, serves } = resident
      const { model, placement, retired } = serves
      if (retired) return
      const before = entries.get(model.id)
      const isNewer = engineId > (newest.get(model.id) ?? '')
      if (!isNewer && before && bytes <= before.bytes + useMargin) return
      if (isNewer) newest.set(model.id, engineId)
      const entry = {
        settings: settingsOf(model),
        bytes: Math.round(bytes),
        estimate: Math.round(placement.estimate ?? placement.bytes),
      }
      const isKnown =
        before?.settings === entry.settings &&
        before.estimate === entry.estimate &&
        Math.abs(before.bytes - entry.bytes) <= useMargin
      if (isKnown) return
      entries.delete(model.id)
      entries.set(model.id, entry)
      for (const id of entries.keys()) {
        if (entries.size <= maxModels) break
        entries.delete(id)
        newest.delete(id)
      }
      write()
    },
  }
}

/**
 * What to book for an estimate: as much more as was used more than an earlier estimate with the same settings. Never more
 * than `limit`, what the devices have for it alone, unless the estimate is: no model is refused by what was measured, which
 * may include what another program began to use meanwhile.
 */
export const bookedBytes = (estimate: number, measured: MeasuredMemory | null, limit: number): number =>
  measured ? Math.max(estimate, Math.min(limit, estimate + measured.bytes - measured.estimate)) : estimate

const isEntry = (entry: [string, unknown]): entry is [string, Entry] => {
  const { settings, bytes, estimate } = objectOf(entry[1])
  return typeof settings === 'string' && Number.isFinite(bytes) && Number.isFinite(estimate)
}
