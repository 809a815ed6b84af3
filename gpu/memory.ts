import { setTimeout as pause } from 'node:timers/promises'
import type { Log } from '../core/log.ts'
import type { DeviceSnapshot } from '../core/models/fleet.ts'
import type { cardProcesses } from './devices/card-processes.ts'
import { type Device, type Discovery, noReadings } from './devices/device.ts'
import type { Resident } from './model-state.ts'
import type { DeviceCapacity } from './place.ts'

/** Where devices are learnt from; tests bring their own. */
export interface DeviceSource {
  /** The cards; never throws. */
  cards(): Promise<Discovery>
  /** The compute processes on the cards, as `cardProcesses` returns them; never throws. */
  processes(): ReturnType<typeof cardProcesses>
  cpu: Device
}

/** How much of a device may be booked: drivers and the rest of the machine need some, and estimates err. */
export const bookable = { nvidia: 0.97, cpu: 0.8 }

/** A freed card shows it 0.5 to 1.5 s after the process is gone; one that does not by then will not. */
const settleMs = 5_000
const settleStepMs = 250
/** What the driver itself may take more or less from one look to the next. */
const releaseMargin = 64 * 2 ** 20

/** Cards are looked at this often while there are any; when a fault keeps them from us, this seldom. */
const pollMs = 5_000
const brokenPollMs = 60_000
const sweptPollMs = 1_500

/** What of a resident's bytes lies on one of its devices. */
export const shareOf = (resident: Resident): number =>
  resident.devices.length > 0 ? resident.bytes / resident.devices.length : 0

/**
 * The devices and what is known of their memory. Measured figures are for waiting and for showing; what is decided by
 * is our own book, because two engines that start at once both see an empty card.
 */
export async function openMemory({
  source,
  residents,
  swept,
  log,
  changed,
}: {
  source: Pick<DeviceSource, 'cards' | 'cpu'>
  residents: () => readonly Resident[]
  /** Whether engines of an earlier run were ended just now, whose memory the cards may still show. */
  swept: boolean
  log: Log
  /** Called when there are other devices, or other amounts that may be booked, than before. */
  changed: () => void
}) {
  let cards: Device[] = []
  let reason: string | null = null
  /** What others use of a card: what was measured there while nobody of ours was on it. */
  const foreign = new Map<string, number>()
  /** The measurement before, of the cards that nobody of ours was on then. */
  let empty = new Map<string, number>()
  let timer: NodeJS.Timeout | undefined
  let nextPollMs = swept ? sweptPollMs : pollMs
  let closed = false

  const on = (id: string) => residents().filter(resident => resident.devices.includes(id))

  /** Learns what the cards show now. */
  async function look(): Promise<Discovery> {
    const found = await source.cards()
    if (found.reason !== reason && found.broken) log.warn('The GPUs cannot be used', { reason: found.reason })
    reason = found.reason
    // That the driver does not answer says nothing about the cards that were there a moment ago.
    cards = found.broken ? cards.map(card => ({ ...card, ...noReadings })) : found.devices
    return found
  }

  async function measure(): Promise<void> {
    const before = new Set(residents().flatMap(resident => resident.devices))
    const found = await look()
    const now = new Map<string, number>()
    for (const { id, usedBytes } of cards) {
      if (usedBytes === null || before.has(id) || on(id).length > 0) continue
      now.set(id, usedBytes)
      // A card shows for a second what an engine of ours has left behind; only what stays belongs to others.
      if (!foreign.has(id)) foreign.set(id, usedBytes)
      else foreign.set(id, Math.min(usedBytes, empty.get(id) ?? foreign.get(id)!))
    }
    empty = now
    if (closed || (cards.length === 0 && !found.broken)) return
    clearTimeout(timer)
    timer = setTimeout(poll, found.broken ? brokenPollMs : nextPollMs)
    timer.unref()
    nextPollMs = pollMs
  }

  function poll(): void {
    const before = JSON.stringify(capacities())
    void measure().then(() => {
      if (!closed && JSON.stringify(capacities()) !== before) changed()
    })
  }

  const devices = (): Device[] => [...cards, source.cpu]

  const capacities = (): DeviceCapacity[] =>
    devices().map(({ id, kind, totalBytes }) => ({
      id,
      kind,
      capacity: Math.max(0, Math.floor(totalBytes * bookable[kind]) - (foreign.get(id) ?? 0)),
    }))

  const cardsOf = (resident: Resident): Device[] => cards.filter(card => resident.devices.includes(card.id))

  await measure()
  return {
    devices,
    capacities,
    cardsOf,
    measure,
    /** Why there are no cards, or none that can be used; null when there are some. */
    reason: (): string | null => reason,
    cores: source.cpu.cores ?? 1,
    /** The part of each of its cards that belongs to a resident, what others use there included: 0 to 1. */
    shareOfCard(resident: Resident): number {
      const parts = cardsOf(resident).map(card => (shareOf(resident) + (foreign.get(card.id) ?? 0)) / card.totalBytes)
      return parts.length > 0 ? Math.max(...parts) : 1
    },
    /** What CUDA_VISIBLE_DEVICES says for it. */
    visibleTo: (resident: Resident): string =>
      cardsOf(resident)
        .map(card => card.cudaId)
        .join(','),
    /** Waits until the resident's cards have the room that others have left, as far as that can be measured. */
    async settle(resident: Resident): Promise<void> {
      const deadline = performance.now() + settleMs
      while (performance.now() < deadline) {
        if (cardsOf(resident).every(card => card.usedBytes === null)) return
        await measure()
        const share = shareOf(resident)
        if (!cardsOf(resident).some(card => card.totalBytes - (card.usedBytes ?? 0) < share)) return
        await pause(settleStepMs)
      }
    },
    /**
     * Waits until the cards show the memory of engines that have ended as free: no more in use than others had before and
     * than is booked there now. At most 5 s, and not at all where it cannot be measured.
     */
    async released(ids: readonly string[]): Promise<void> {
      const deadline = performance.now() + settleMs
      const inUse = ({ id, usedBytes }: Device): boolean => {
        const expected = on(id).reduce((sum, resident) => sum + shareOf(resident), foreign.get(id) ?? 0)
        return ids.includes(id) && usedBytes !== null && usedBytes > expected + releaseMargin
      }
      if (!cards.some(({ id }) => ids.includes(id))) return
      // Not `measure`: at this rate it would take what is not free yet for the memory of others.
      for (await look(); cards.some(inUse) && performance.now() < deadline; await look()) await pause(settleStepMs)
    },
    /** What a resident takes on its cards as they show it now, in bytes; null where that cannot be told. */
    async taken(resident: Resident): Promise<number | null> {
      if (cardsOf(resident).length === 0) return null
      await measure()
      let sum = 0
      for (const card of cardsOf(resident)) {
        const others = on(card.id).filter(other => other !== resident)
        // Another one that is loading or leaving beside it makes every difference meaningless.
        if (card.usedBytes === null || others.some(other => other.state !== 'ready')) return null
        sum += card.usedBytes - (foreign.get(card.id) ?? 0) - others.reduce((all, other) => all + shareOf(other), 0)
      }
      return sum > 0 ? sum : null
    },
    snapshot: (): DeviceSnapshot[] =>
      devices().map(device => ({
        id: device.id,
        name: device.name,
        kind: device.kind,
        totalBytes: device.totalBytes,
        usedBytes: device.usedBytes,
        bookedBytes: Math.round(on(device.id).reduce((sum, resident) => sum + shareOf(resident), 0)),
        utilization: device.utilization,
        temperatureCelsius: device.temperatureCelsius,
        powerWatts: device.powerWatts,
        powerLimitWatts: device.powerLimitWatts,
      })),
    close(): void {
      closed = true
      clearTimeout(timer)
    },
  }
}
export type Memory = Awaited<ReturnType<typeof openMemory>>
