/** A time for a table: UTC to the minute, or a dash where there is none. Epoch milliseconds. */
export const timeText = (at: number | null): string =>
  at === null ? '-' : `${new Date(at).toISOString().slice(0, 16).replace('T', ' ')}Z`

const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const

/** A size for a person, three digits: `512 MiB`. */
export function sizeText(bytes: number): string {
  let value = bytes
  let unit = 0
  for (; value >= 1024 && unit < units.length - 1; unit++) value /= 1024
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`
}
