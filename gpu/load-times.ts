import { createHash } from 'node:crypto'
import { mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { version } from '../core/assets.ts'
import { objectOf } from '../core/json.ts'
import type { Log } from '../core/log.ts'
import { needsNewEngine } from '../core/models/change.ts'
import type { Model } from '../core/models/model.ts'
import { movingAverage } from '../core/moving-average.ts'
import { optionalJson } from '../core/optional-file.ts'
import { startMs } from './residency/model-state.ts'

/** Models whose times are kept; those that were loaded longest ago are forgotten first. */
const maxModels = 500
/** Loads of smaller models tell nothing about the speed of the disk. */
const largeBytes = 2 ** 30

interface LoadTime {
  /** Of the settings that its engine was started with, and of this version. */
  settings: string
  /** Milliseconds until the engine was ready: a moving average. */
  loadMs: number
  /** The booked memory. */
  bytes: number
}

/** Identifies the settings of a model that concern its engine, and the version of the engines that infer brings. */
function settingsOf(model: Model): string {
  const fields = Object.entries(model).filter(([field]) => needsNewEngine(field))
  const text = JSON.stringify([version, fields.sort(([a], [b]) => (a < b ? -1 : 1))])
  return createHash('sha256').update(text).digest('base64url').slice(0, 22)
}

/** Keeps how long loads take, over restarts: `load-times.json` in the data directory. */
export function openLoadTimes({ dataDir, log }: { dataDir: string; log: Log }) {
  const path = join(dataDir, 'load-times.json')
  const times = new Map(Object.entries(objectOf(optionalJson(path))).filter(isLoadTime))

  function write(): void {
    try {
      mkdirSync(dataDir, { recursive: true })
      writeFileSync(`${path}.new`, JSON.stringify(Object.fromEntries(times)))
      renameSync(`${path}.new`, path)
    } catch (thrown) {
      log.warn('Load times could not be stored', { path }, thrown)
    }
  }

  return {
    /** Milliseconds that loads of the model take with these settings, on average; null before the first. */
    averageMs(model: Model): number | null {
      const own = times.get(model.id)
      return own?.settings === settingsOf(model) ? own.loadMs : null
    },
    /** Milliseconds that a first load should take: as long for each byte as other large models have; null before any. */
    estimateMs(bytes: number): number | null {
      const large = [...times.values()].filter(one => one.bytes >= largeBytes)
      if (large.length === 0 || bytes === 0) return null
      const readMs = large.reduce((sum, { loadMs }) => sum + Math.max(0, loadMs - startMs), 0)
      return startMs + (readMs / large.reduce((sum, one) => sum + one.bytes, 0)) * bytes
    },
    loaded(model: Model, bytes: number, ms: number): void {
      const settings = settingsOf(model)
      const before = times.get(model.id)
      const loadMs = Math.round(movingAverage(before?.settings === settings ? before.loadMs : null, ms))
      times.delete(model.id)
      times.set(model.id, { settings, loadMs, bytes: Math.round(bytes) })
      if (times.size > maxModels) times.delete(times.keys().next().value!)
      write()
    },
  }
}

export type LoadTimes = ReturnType<typeof openLoadTimes>

const isLoadTime = (entry: [string, unknown]): entry is [string, LoadTime] => {
  const { settings, loadMs, bytes } = objectOf(entry[1])
  return typeof settings === 'string' && Number.isFinite(loadMs) && Number.isFinite(bytes)
}
