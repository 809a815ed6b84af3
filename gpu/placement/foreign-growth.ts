import type { DeviceCapacity } from '../residency/place.ts'

/** What stays free of idle engines while another program takes more of a card: the larger of the two. */
const margin = { share: 1 / 16, bytes: 512 * 2 ** 20 }

interface Measured {
  id: string
  totalBytes: number
  usedBytes: number | null
}

/**
 * Returns a function that is called after each measurement, and says how many bytes idle engines should free on cards of
 * which other programs have taken more since the last one. A program that finds no memory fails; an idle engine that has left
 * costs one load.
 */
export function openForeignGrowth() {
  const before = new Map<string, number>()
  return (devices: readonly Measured[], capacities: readonly DeviceCapacity[]): Map<string, number> => {
    const needed = new Map<string, number>()
    for (const { id, totalBytes, usedBytes } of devices) {
      const { usedByOthers = 0 } = capacities.find(device => device.id === id) ?? {}
      const has = before.get(id) ?? usedByOthers
      before.set(id, usedByOthers)
      if (usedBytes === null || usedByOthers <= has) continue
      const missing = Math.max(margin.bytes, totalBytes * margin.share) - (totalBytes - usedBytes)
      if (missing > 0) needed.set(id, missing)
    }
    return needed
  }
}
