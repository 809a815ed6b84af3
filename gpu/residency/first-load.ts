import { bytesPerMs, startMs } from './model-state.ts'

/** A load that was measured. */
export interface MeasuredLoad {
  loadMs: number
  bytes: number
  /** The kind of engine, and the number of the disk of its files. */
  engine: string
  disk: number
}

export interface FirstLoad {
  ms: number
  /** Whether an engine of its kind and about its size was loaded here. */
  isLikely: boolean
}

/** Loads of smaller models tell how long an engine takes to start, and nothing about the speed of the disk. */
const largeBytes = 2 ** 30

/**
 * Estimates how long a model takes to load that was never loaded here: from what other loads took, those of its kind of
 * engine and on its disk if there are any. Medians, so that one slow load changes little. Null before any load.
 */
export function firstLoad(
  { bytes, engine, disk }: Omit<MeasuredLoad, 'loadMs'>,
  measured: readonly MeasuredLoad[],
): FirstLoad | null {
  const ofEngine = measured.filter(one => one.engine === engine)
  const ofBoth = ofEngine.filter(one => one.disk === disk)
  const kin = [ofBoth, ofEngine, measured.filter(one => one.disk === disk), measured].find(some => some.length > 0)
  if (!kin) return null
  const line = lineThrough(kin)
  const ms = line ? line.startMs + line.perByte * bytes : median(kin.map(one => scaled(one, bytes)))
  const isLikely =
    bytes >= largeBytes && ofEngine.some(one => one.bytes >= bytes / 2 && one.bytes <= bytes * 2 && one.disk === disk)
  return { ms, isLikely }
}

/**
 * The start of the engine and the time for each byte, from loads of different sizes: the median of the slopes (Theil and
 * Sen). Undefined where all are about as large.
 */
function lineThrough(loads: readonly MeasuredLoad[]): { startMs: number; perByte: number } | undefined {
  const slopes = loads.flatMap(one =>
    loads
      .filter(({ bytes }) => bytes >= 2 * one.bytes && bytes - one.bytes >= largeBytes)
      .map(({ bytes, loadMs }) => (loadMs - one.loadMs) / (bytes - one.bytes)),
  )
  if (slopes.length === 0) return undefined
  const perByte = Math.max(0, median(slopes))
  return { startMs: Math.max(0, median(loads.map(({ loadMs, bytes }) => loadMs - perByte * bytes))), perByte }
}

/** What a load of `bytes` would take after this one: the start is the same, and of a large model the rest is reading. */
function scaled({ loadMs, bytes }: MeasuredLoad, wanted: number): number {
  if (bytes < largeBytes) return loadMs + Math.max(0, wanted - bytes) / bytesPerMs
  const start = Math.min(startMs, loadMs)
  return start + ((loadMs - start) * wanted) / bytes
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}
