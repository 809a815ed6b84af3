import { setTimeout as pause } from 'node:timers/promises'
import type { Log } from '../../core/log.ts'
import type { DeviceSnapshot } from '../../core/models/fleet.ts'
import { type Device, type Discovery, noReadings } from '../devices/device.ts'
import { openEnergy } from '../devices/energy.ts'
import type { cardProcesses } from '../devices/nvidia-smi.ts'
import type { Resident } from '../residency/model-state.ts'
import type { DeviceCapacity } from '../residency/place.ts'

/** The source of the devices; tests pass their own. */
export interface DeviceSource {
  /** The cards; never throws. */
  cards(): Promise<Discovery>
  /** The compute processes on the cards, as `cardProcesses` returns them; never throws. */
  processes(): ReturnType<typeof cardProcesses>
  cpu: Device
}

/** Share of a device that may be booked: drivers and other programs need some, and estimates are not exact. */
export const bookable = { nvidia: 0.97, cpu: 0.8 }

/** A card shows freed memory 0.5 to 1.5 s after the process has ended; after 5 s it will not any more. */
const settleMs = 5_000
const settleStepMs = 250
/** Bytes by which the driver's own use may differ between two measurements. */
const releaseMargin = 64 * 2 ** 20

/** Milliseconds between measurements: normally, while a fault keeps the cards from being used, and after a sweep. */
const pollMs = 5_000
const brokenPollMs = 60_000
const sweptPollMs = 1_500

/** The resident's bytes on each of its devices. */
export const shareOf = (resident: Resident): number =>
  resident.devices.length > 0 ? resident.bytes / resident.devices.length : 0

/**
 * The devices and their memory. Placement decides by booked memory, because two engines that start at once both measure
 * an empty card. Measured memory is used for waiting and for display.
 */
export async function openMemory(options: {
  source: Pick<DeviceSource, 'cards' | 'cpu'>
  residents: () => readonly Resident[]
  /** Whether engines of an earlier run were just ended: the cards may still show their memory as used. */
  swept: boolean
  log: Log
  /** Called when the devices or their bookable memory have changed. */
  changed: () => void
}) {
  const { source, residents, swept, log, changed } = options
  const energy = openEnergy()
  let cards: Device[] = []
  let reason: string | null = null
  /** Bytes that other programs use on each card, measured while no engine was on it. */
  const foreign = new Map<string, number>()
  /** The previous measurement of the cards without an engine. */
  let withoutEngines = new Map<string, number>()
  let timer: NodeJS.Timeout | undefined
  let nextPollMs = swept ? sweptPollMs : pollMs
  let closed = false

  const residentsOn = (id: string) => residents().filter(resident => resident.devices.includes(id))
  const bookedOn = (id: string) => residentsOn(id).reduce((sum, resident) => sum + shareOf(resident), 0)
  const foreignOn = (id: string) => foreign.get(id) ?? 0

  async function readCards(): Promise<Discovery> {
    const found = await source.cards()
    if (found.reason !== reason && found.broken) log.warn('The GPUs cannot be used', { reason: found.reason })
    reason = found.reason
    // When the driver does not answer, the cards that it reported before are kept, without readings.
    cards = found.broken ? cards.map(card => ({ ...card, ...noReadings })) : found.devices
    for (const { id, powerWatts } of cards) energy.measured(id, powerWatts)
    return found
  }

  async function measure(): Promise<void> {
    const before = new Set(residents().flatMap(resident => resident.devices))
    const found = await readCards()
    const now = new Map<string, number>()
    for (const { id, usedBytes } of cards) {
      if (usedBytes === null || before.has(id) || residentsOn(id).length > 0) continue
      now.set(id, usedBytes)
      // For about a second a card still shows the memory of an ended engine, so the lower of two measurements counts.
      if (!foreign.has(id)) foreign.set(id, usedBytes)
      else foreign.set(id, Math.min(usedBytes, withoutEngines.get(id) ?? foreign.get(id)!))
    }
    withoutEngines = now
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
      capacity: Math.max(0, Math.floor(totalBytes * bookable[kind]) - foreignOn(id)),
    }))

  const cardsOf = (resident: Resident): Device[] => cards.filter(card => resident.devices.includes(card.id))

  await measure()
  return {
    devices,
    capacities,
    /** Shares the energy of the devices among the slots in use; it gets the power of each card with every measurement. */
    energy,
    cardsOf,
    measure,
    /** Why there is no usable card, as a sentence; null when there is one. */
    reason: (): string | null => reason,
    cores: source.cpu.cores ?? 1,
    /** The resident's booked share of each of its devices plus what other programs use of a card: 0 to 1. */
    shareOfDevice(resident: Resident): number {
      const parts = devices()
        .filter(({ id }) => resident.devices.includes(id))
        .map(({ id, totalBytes }) => (shareOf(resident) + foreignOn(id)) / totalBytes)
      return parts.length > 0 ? Math.max(...parts) : 1
    },
    /** The value of CUDA_VISIBLE_DEVICES for a resident. */
    visibleTo: (resident: Resident): string =>
      cardsOf(resident)
        .map(card => card.cudaId)
        .join(','),
    /** Waits until the resident's cards show enough free memory, at most 5 s, not at all when it cannot be measured. */
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
     * Waits until the cards show the memory of ended engines as free: they use no more than other programs and the
     * current bookings. At most 5 s, and not at all when it cannot be measured.
     */
    async released(ids: readonly string[]): Promise<void> {
      const deadline = performance.now() + settleMs
      const inUse = ({ id, usedBytes }: Device): boolean => {
        const expected = foreignOn(id) + bookedOn(id)
        return ids.includes(id) && usedBytes !== null && usedBytes > expected + releaseMargin
      }
      if (!cards.some(({ id }) => ids.includes(id))) return
      // Not `measure`: polled this often, it would count memory that is not free yet as used by other programs.
      for (await readCards(); cards.some(inUse) && performance.now() < deadline; await readCards())
        await pause(settleStepMs)
    },
    /** Measures the bytes that a resident uses on its cards; null when that is not possible. */
    async measuredUse(resident: Resident): Promise<number | null> {
      if (cardsOf(resident).length === 0) return null
      await measure()
      let sum = 0
      for (const card of cardsOf(resident)) {
        const others = residentsOn(card.id).filter(other => other !== resident)
        // While another engine on the card starts or stops, the difference says nothing about this one.
        if (card.usedBytes === null || others.some(other => other.state !== 'ready')) return null
        sum += card.usedBytes - foreignOn(card.id) - others.reduce((all, other) => all + shareOf(other), 0)
      }
      return sum > 0 ? sum : null
    },
    snapshot: (): DeviceSnapshot[] =>
      devices().map(({ cudaId: _cudaId, uuid: _uuid, cores: _cores, ...device }) => ({
        ...device,
        bookedBytes: Math.round(bookedOn(device.id)),
      })),
    close(): void {
      closed = true
      clearTimeout(timer)
    },
  }
}
export type Memory = Awaited<ReturnType<typeof openMemory>>
