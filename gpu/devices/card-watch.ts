import { cardFaults, xidIn } from './card-faults.ts'
import type { CardReport, Discovery } from './device.ts'
import { openKernelLog } from './kernel-log.ts'

/** How often the driver is asked for faults of the memory, milliseconds. */
const askedEveryMs = 60_000

/**
 * Adds to measurements what is wrong with cards that the driver still lists: errors of their memory, and what the kernel
 * has reported since the last one, where its log can be read.
 */
export function openCardWatch(environment: Readonly<Record<string, string | undefined>>) {
  let kernel: ReturnType<typeof openKernelLog> | null = null
  let buses: ReadonlyMap<string, string> = new Map()
  let faulty: readonly CardReport[] = []
  let askAt = 0

  return async (found: Discovery): Promise<Discovery> => {
    if (found.broken || (found.devices.length === 0 && !found.lost?.length)) return found
    if (performance.now() >= askAt) {
      askAt = performance.now() + askedEveryMs
      const answer = await cardFaults(environment)
      // A driver that knows none of the fields never will.
      if (answer === null) askAt = Number.POSITIVE_INFINITY
      else ({ buses, faulty } = answer)
    }
    if (kernel === null) kernel = buses.size > 0 ? openKernelLog() : undefined
    const reported = kernel?.().flatMap((line): CardReport[] => {
      const xid = xidIn(line)
      const id = xid && buses.get(xid.bus)
      return id === undefined ? [] : [{ id, reason: xid!.reason, isFatal: true }]
    })
    const all = [...(reported ?? []), ...faulty]
    return all.length > 0 ? { ...found, faulty: all } : found
  }
}
