/** The power of one device, and the energy that each slot in use has had of it. */
interface Meter {
  /** Slots in use on the device. */
  slots: number
  watts: number | null
  /** Energy for one slot in use since the meter was opened, millijoules. Stands still while no slot is in use. */
  perSlot: number
  /** How often the power was not known while a slot was in use. */
  gaps: number
  at: number
}

/** The meters of the devices of one slot when it was taken. */
export type EnergyMark = readonly { meter: Meter; perSlot: number; gaps: number }[]

/**
 * Shares the energy of each device among the slots in use on it, in proportion to their time: the sum over all requests
 * is the energy of the device while it worked. The power of a device is its last measurement by the regular poll, so a
 * request costs a few additions.
 */
export function openEnergy(now: () => number = () => performance.now()) {
  const meters = new Map<string, Meter>()

  function meterOf(id: string): Meter {
    let meter = meters.get(id)
    if (!meter) meters.set(id, (meter = { slots: 0, watts: null, perSlot: 0, gaps: 0, at: now() }))
    return meter
  }

  /** Counts the energy up to now. Watts × milliseconds are millijoules. */
  function advance(meter: Meter): void {
    const at = now()
    if (meter.slots > 0)
      if (meter.watts === null) meter.gaps++
      else meter.perSlot += (meter.watts * (at - meter.at)) / meter.slots
    meter.at = at
  }

  return {
    /** Records a measurement; null if the device did not report its power. */
    measured(id: string, watts: number | null): void {
      const meter = meterOf(id)
      advance(meter)
      meter.watts = watts
    },
    take(devices: readonly string[]): EnergyMark {
      return devices.map(id => {
        const meter = meterOf(id)
        advance(meter)
        meter.slots++
        return { meter, perSlot: meter.perSlot, gaps: meter.gaps }
      })
    },
    /** The energy of a slot since it was taken, millijoules; null if it has no devices or one reported no power. */
    since(mark: EnergyMark): number | null {
      if (mark.length === 0) return null
      let sum = 0
      for (const { meter, perSlot, gaps } of mark) {
        advance(meter)
        if (meter.gaps > gaps) return null
        sum += meter.perSlot - perSlot
      }
      return sum
    },
    release(mark: EnergyMark): void {
      for (const { meter } of mark) {
        advance(meter)
        meter.slots--
      }
    },
  }
}
export type Energy = ReturnType<typeof openEnergy>
