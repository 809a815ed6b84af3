/* Durations and sizes as people read them. Without zod: the thread that writes the store needs nothing else of them. */

/** Milliseconds. */
export const durationUnits = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const
/** Bytes. */
export const byteUnits = {
  B: 1,
  KB: 1e3,
  MB: 1e6,
  GB: 1e9,
  TB: 1e12,
  KiB: 2 ** 10,
  MiB: 2 ** 20,
  GiB: 2 ** 30,
  TiB: 2 ** 40,
} as const

/** Formats milliseconds in the largest unit that needs no fraction: `90s`, `7d`. `Duration` parses the result. */
export const durationText = (ms: number): string => inLargestUnit(ms, durationUnits)

/** Formats bytes in the largest binary unit that needs no fraction: `96KiB`, `1GiB`. `Bytes` parses the result. */
export const bytesText = (bytes: number): string => {
  const { B, KiB, MiB, GiB, TiB } = byteUnits
  return inLargestUnit(bytes, { B, KiB, MiB, GiB, TiB })
}

/** `units` are in ascending order; every value is a multiple of the first. */
function inLargestUnit(value: number, units: Readonly<Record<string, number>>): string {
  const fitting = Object.entries(units).filter(([, size]) => value % size === 0)
  const [name, size] = (value === 0 ? fitting[0] : fitting.at(-1)) ?? ['', 1]
  return `${value / size}${name}`
}
