import { setTimeout as pause } from 'node:timers/promises'
import type { Log } from '../../core/log.ts'
import type { DeviceProcess, DeviceSnapshot, LeftDevice } from '../../core/models/fleet.ts'
import { bookable, type Device, type Discovery, noReadings, shownDevice } from '../devices/device.ts'
import { openEnergy } from '../devices/energy.ts'
import type { cardProcesses } from '../devices/nvidia-smi.ts'
import { deviceFilesOf, visibilityVariables } from '../devices/visible-devices.ts'
import type { Resident } from '../residency/model-state.ts'
import { shareOn } from '../residency/occupancy.ts'
import { bookingNow } from '../residency/parking.ts'
import type { DeviceCapacity, PlacementRequest } from '../residency/place.ts'
import { withSharing } from '../residency/shared-memory.ts'
import { type CardFault, openCardHealth } from './card-health.ts'
import { type CardMeasurement, openCardUse, useMargin } from './card-use.ts'
import { capacitiesOf } from './placement-target.ts'

/** The source of the devices; tests pass their own. */
export interface DeviceSource {
  /** The cards; never throws. */
  cards(): Promise<Discovery>
  /** Resolves when all cards are known: some tools take seconds the first time. */
  settled?(): Promise<void>
  /** Sets the function that is called when further cards are known. */
  onChange?(listener: () => void): void
  /** The compute processes on the cards, as `cardProcesses` returns them; never throws. */
  processes(): ReturnType<typeof cardProcesses>
  cpu: Device
}

const bookableOf = ({ kind, isUnified }: Device): number => bookable[kind === 'cpu' || isUnified ? 'cpu' : 'gpu']

/** A card shows freed memory 0.5 to 1.5 s after the process has ended; after 5 s it will not any more. */
const settleMs = 5_000
const settleStepMs = 250

/**
 * Milliseconds between measurements: normally, while a fault keeps the cards from being used, and while a card may show
 * the memory of an ended process.
 */
const pollMs = 5_000
const brokenPollMs = 60_000
/** Without a card: one that appears with its driver or backend is used without a restart. */
const absentPollMs = 15_000
const releasePollMs = 1_500
/** Part of a card that must stay free, so that it is not measured again before a load. */
const tightShare = 1 / 4
/** A measurement of the last second is not repeated before a model is refused. */
const freshMs = 1_000

/**
 * The devices and their memory. Placement decides by booked memory, because two engines that start at once both measure
 * an empty card. Measured memory is used for waiting and for display.
 */
export async function openMemory(options: {
  source: Pick<DeviceSource, 'cards' | 'settled' | 'onChange' | 'cpu'>
  residents: () => readonly Resident[]
  /** The compute processes on each card with the engines to which they belong; cards without this knowledge are missing. */
  processes: () => Promise<ReadonlyMap<string, readonly DeviceProcess[]>>
  /** Called with the bytes that a ready engine uses on each of its devices, whenever that was measured. */
  measured: (resident: Resident, bytes: readonly number[]) => void
  /** Whether engines of an earlier run were just ended: the cards may still show their memory as used. */
  swept: boolean
  log: Log
  /** Called when a card has got a fault: it gets no engine until it answers again. */
  failed: (id: string, fault: CardFault) => void
  /** Called when the devices or their bookable memory have changed. */
  changed: () => void
}) {
  const { source, residents, swept, log, changed } = options
  const energy = openEnergy()
  const use = openCardUse()
  const health = openCardHealth(log, (id, fault) => options.failed(id, fault))
  let cards: Device[] = []
  let reason: string | null = null
  let broken = false
  let left: readonly LeftDevice[] = []
  let timer: NodeJS.Timeout | undefined
  let nextPollMs = swept ? releasePollMs : pollMs
  let measuredAt = Number.NEGATIVE_INFINITY
  /** The capacities that were reported last. */
  let reported = ''
  let closed = false

  const residentsOn = (id: string) => residents().filter(resident => resident.devices.includes(id))
  const bookedOn = (id: string) => residents().reduce((sum, resident) => sum + shareOn(bookingNow(resident), id), 0)
  const { foreignOn } = use

  async function readCards(): Promise<Discovery> {
    const found = await source.cards()
    if (found.reason !== reason && found.broken) log.warn('The GPUs cannot be used', { reason: found.reason })
    reason = found.reason
    broken = found.broken
    left = found.left ?? []
    // When the driver does not answer, the cards that it reported before are kept, without readings.
    cards =
      found.broken && cards.length > 0 ? cards.map(card => ({ ...card, ...noReadings })) : health.seen(cards, found)
    for (const { id, powerWatts } of cards) energy.measured(id, powerWatts)
    return found
  }

  /** The engines with a process: one that waits for memory uses none yet. */
  const enginesOn = (id: string) =>
    residentsOn(id)
      .filter(({ state, phase }) => state !== 'starting' || phase === 'launching')
      .map(resident => ({
        engineId: resident.engineId,
        bytes: shareOn(resident, id),
        isReady: resident.state === 'ready' || (resident.state === 'parked' && resident.phase === 'parked'),
      }))

  /** The bytes of each engine on a card by its processes; null if one has none, or all use more than the card shows. */
  function byEngine(
    rows: readonly DeviceProcess[] | undefined,
    { usedBytes, engines }: Pick<CardMeasurement, 'usedBytes' | 'engines'>,
  ): Map<string, number> | null {
    const sums = new Map<string, number>()
    for (const { engineId, bytes } of rows ?? [])
      if (engineId !== null) sums.set(engineId, (sums.get(engineId) ?? 0) + (bytes ?? Number.NaN))
    const all = engines.reduce((sum, { engineId }) => sum + (sums.get(engineId) ?? Number.NaN), 0)
    return all <= usedBytes + useMargin ? sums : null
  }

  /** Measures the cards, and reports when the memory that may be booked has changed. */
  async function measure(): Promise<void> {
    const engines = new Map(cards.map(({ id }) => [id, JSON.stringify(enginesOn(id))]))
    const found = await readCards()
    const measurements = cards.flatMap(({ id, usedBytes }) =>
      found.broken || usedBytes === null ? [] : [{ id, usedBytes, engines: enginesOn(id) }],
    )
    const processes = measurements.some(one => use.needsDetails(one)) ? await options.processes() : undefined
    for (const one of measurements) {
      // An engine that has started, become ready or ended meanwhile may be part of the measurement or not.
      if ((engines.get(one.id) ?? '[]') !== JSON.stringify(enginesOn(one.id))) continue
      use.measured({ ...one, byEngine: byEngine(processes?.get(one.id), one) })
    }
    for (const resident of residents()) {
      const bytes = resident.state === 'parked' ? null : sharesInUse(resident)
      if (bytes !== null) options.measured(resident, bytes)
    }
    measuredAt = performance.now()
    reportChange()
    if (closed) return
    clearTimeout(timer)
    const soon = use.isUnsettled() ? releasePollMs : nextPollMs
    timer = setTimeout(() => void measure(), found.broken ? brokenPollMs : cards.length === 0 ? absentPollMs : soon)
    timer.unref()
    nextPollMs = pollMs
  }

  function reportChange(): void {
    const now = JSON.stringify(capacities())
    if (closed || now === reported) return
    reported = now
    changed()
  }

  /** The measured bytes of a resident on each of its cards; null if they are not known. */
  function sharesInUse({ devices, engineId }: Resident): number[] | null {
    const bytes = devices.map(id => use.engineOn(id, engineId) ?? Number.NaN)
    return bytes.reduce((all, one) => all + one, 0) > 0 ? bytes : null
  }

  const devices = (): Device[] => [...cards, source.cpu]

  const withFault = (id: string): { capacity?: number; fault?: string } => {
    const fault = health.faultOf(id)
    return fault === undefined ? {} : { capacity: 0, fault }
  }

  function capacities(): DeviceCapacity[] {
    const all = devices()
    // The memory of these is that of the processor.
    const shared = all.flatMap(({ id, kind, isUnified }) => (kind === 'cpu' || isUnified ? [id] : []))
    return all.map(device => ({
      id: device.id,
      kind: device.kind === 'cpu' ? 'cpu' : 'gpu',
      capacity: Math.max(
        0,
        Math.min(
          Math.floor(device.totalBytes * bookableOf(device)) - foreignOn(device.id),
          device.budget ?? device.totalBytes,
        ),
      ),
      totalBytes: device.totalBytes,
      usedByOthers: foreignOn(device.id),
      ...(shared.length > 1 && shared.includes(device.id) && { sharesWith: shared.filter(id => id !== device.id) }),
      ...withFault(device.id),
    }))
  }

  const cardsOf = (resident: Pick<Resident, 'devices'>): Device[] =>
    cards.filter(card => resident.devices.includes(card.id))

  let changing: Promise<void> | undefined
  await measure()
  source.onChange?.(() => void (changing = measure()))
  return {
    devices,
    /** Resolves when all cards are known and measured. */
    async settled(): Promise<void> {
      await source.settled?.()
      await changing
    },
    /** Which cards have a fault. */
    health,
    /** The cards that are left to others. */
    left: (): readonly LeftDevice[] => left,
    capacities,
    /** Shares the energy of the devices among the slots in use; it gets the power of each card with every measurement. */
    energy,
    cardsOf,
    measure,
    /** Why existing cards cannot be used, as a sentence; null when they can, and when there are none. */
    fault: (): string | null => (broken ? reason : null),
    cores: source.cpu.cores ?? 1,
    physicalCores: source.cpu.physicalCores ?? source.cpu.cores ?? 1,
    /** Bytes that may be booked for a model where no other engine is. */
    largest({
      kind,
      devices: count,
      only,
      split,
      takesShare,
    }: Pick<PlacementRequest, 'kind' | 'devices' | 'only' | 'split' | 'takesShare'>): number {
      const sizes = capacitiesOf({ kind, only, takesShare }, capacities())
      return split ? sizes.slice(0, count).reduce((sum, size) => sum + size, 0) : (sizes[count - 1] ?? 0) * count
    },
    /** The most that is booked of one of the resident's devices, as a share of its memory, and of what is free there now. */
    sharesOfDevices(resident: Pick<Resident, 'devices' | 'bytes' | 'shares'>): { ofAll: number; ofFree: number } {
      const own = devices().filter(({ id }) => resident.devices.includes(id))
      if (own.length === 0) return { ofAll: 1, ofFree: 1 }
      // Of cards of which its engine takes the same share, the larger ones have a larger part of the booking.
      const least = Math.min(...own.map(({ id }) => shareOn(resident, id)))
      return {
        ofAll: Math.max(...own.map(({ id, totalBytes }) => shareOn(resident, id) / totalBytes)),
        ofFree:
          least /
          Math.max(
            1,
            Math.min(...own.map(({ id, totalBytes, usedBytes }) => totalBytes - (usedBytes ?? foreignOn(id)))),
          ),
      }
    },
    /** The variables by which the engine of a resident sees only its cards, and the files in /dev that it needs. */
    visibleTo: (resident: Resident) => ({
      variables: visibilityVariables(cards, cardsOf(resident)),
      files: deviceFilesOf(cardsOf(resident)),
    }),
    /** Waits until the resident's cards show enough free memory, at most 5 s, not at all when it cannot be measured. */
    async settle(resident: Resident): Promise<void> {
      const deadline = performance.now() + settleMs
      while (performance.now() < deadline) {
        if (cardsOf(resident).every(card => card.usedBytes === null)) return
        await measure()
        // What a parked engine has kept is part of what it gets.
        const kept = resident.wakes ? (resident.parking?.cardBytes ?? 0) : 0
        const lacks = ({ id, totalBytes, usedBytes }: Device) =>
          totalBytes - (usedBytes ?? 0) + kept < shareOn(resident, id)
        if (!cardsOf(resident).some(lacks)) return
        await pause(settleStepMs)
      }
    },
    /**
     * Measures before an engine starts, where the last measurement is older than a second and a quarter of its card is not
     * left besides: another program may have taken what was free. Undefined where that is not needed.
     */
    measureAgain(resident: Resident): Promise<void> | undefined {
      if (performance.now() - measuredAt < freshMs) return undefined
      const isTight = ({ id, totalBytes }: Device) => {
        const free = capacities().find(device => device.id === id)!.capacity - bookedOn(id)
        return free < totalBytes * tightShare
      }
      return cardsOf(resident).some(isTight) ? measure() : undefined
    },
    /**
     * Waits until the cards show the memory of ended engines as free: they use no more than other programs and the
     * current bookings. At most 5 s, and not at all when it cannot be measured.
     */
    async released(ids: readonly string[]): Promise<void> {
      const deadline = performance.now() + settleMs
      const inUse = ({ id, usedBytes }: Device): boolean => {
        const expected = foreignOn(id) + bookedOn(id)
        return ids.includes(id) && usedBytes !== null && usedBytes > expected + useMargin
      }
      if (!cards.some(({ id }) => ids.includes(id))) return
      // Not `measure`: polled this often, it would count memory that is not free yet as used by other programs.
      for (await readCards(); cards.some(inUse) && performance.now() < deadline; await readCards())
        await pause(settleStepMs)
    },
    /** The most that the driver lists for a parked engine on one of its cards; null where it does not say. */
    async keptByParked(resident: Resident): Promise<number | null> {
      const processes = await options.processes()
      const kept = cardsOf(resident).map(({ id }) => {
        const rows = processes.get(id)?.filter(({ engineId }) => engineId === resident.engineId) ?? []
        return rows.reduce((sum, { bytes }) => sum + (bytes ?? Number.NaN), rows.length > 0 ? 0 : Number.NaN)
      })
      const most = Math.max(...kept)
      return most > 0 ? most : null
    },
    /** The measured bytes of a resident on all of its cards; null if they are not known. */
    bytesInUse: (resident: Resident): number | null =>
      sharesInUse(resident)?.reduce((sum, bytes) => sum + bytes, 0) ?? null,
    /**
     * The engine of this resident has found too little memory: counts at once what the driver lists for other programs, which
     * the next measurement would only find while no engine starts or ends.
     */
    async foundFull(resident: Resident): Promise<void> {
      const processes = await options.processes()
      for (const { id } of cardsOf(resident)) {
        const others = (processes.get(id) ?? []).filter(({ engineId }) => engineId === null)
        use.othersUse(
          id,
          others.reduce((sum, { bytes }) => sum + (bytes ?? 0), 0),
        )
      }
      reportChange()
    },
    /** The engine of this resident has ended: its cards show its memory for a moment longer. */
    ended: (resident: Resident): void => use.ended(resident.devices),
    /** Measures unless that was done a second ago. Returns whether the memory that may be booked has changed. */
    async refresh(): Promise<boolean> {
      if (cards.length === 0 || performance.now() - measuredAt < freshMs) return false
      const before = reported
      await measure()
      return reported !== before
    },
    snapshot: (): Omit<DeviceSnapshot, 'paused'>[] =>
      devices().map(device => ({
        ...shownDevice(device),
        fault: health.faultOf(device.id) ?? null,
        bookedBytes: Math.round(withSharing([device.id], capacities()).reduce((sum, one) => sum + bookedOn(one), 0)),
      })),
    close(): void {
      closed = true
      clearTimeout(timer)
    },
  }
}
export type Memory = Awaited<ReturnType<typeof openMemory>>
