import type { StyledLine } from '../terminal/styled-line.ts'
import type { StatusDevice } from './status-snapshot.ts'

/** Returns how many of `cells` a part of a whole fills; at least one for a part above 0. */
function cellsOf(part: number, whole: number, cells: number): number {
  if (part <= 0 || whole <= 0) return 0
  return Math.min(cells, Math.max(1, Math.round((part / whole) * cells)))
}

/**
 * Draws the memory of a device as a bar: full for memory that the driver reports as used, shaded for booked memory
 * beyond that, light for free memory.
 */
export function memoryBar({ total_bytes, used_bytes, booked_bytes }: StatusDevice, cells: number): StyledLine {
  const used = cellsOf(used_bytes ?? 0, total_bytes, cells)
  const booked = Math.max(used, cellsOf(booked_bytes, total_bytes, cells))
  const nearlyFull = Math.max(used_bytes ?? 0, booked_bytes) > 0.95 * total_bytes
  return [
    { text: '█'.repeat(used), look: nearlyFull ? 'bad' : 'good' },
    { text: '▒'.repeat(booked - used), look: nearlyFull ? 'bad' : 'warning' },
    { text: '░'.repeat(cells - booked), look: 'faint' },
  ]
}
