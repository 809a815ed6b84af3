import type { Fleet } from '../core/models/fleet.ts'
import type { EngineSlots, UsedSlots } from '../core/models/used-slots.ts'
import { presetOf } from './presets/presets.ts'
import type { Resident } from './residency/model-state.ts'
import type { Residency } from './residency/residency.ts'

/** The addresses of an engine that infer does not start; empty for others. */
const addressesOf = ({ serves }: Pick<Resident, 'serves'>): readonly string[] =>
  presetOf(serves.model).addresses(serves.model) ?? []

/** The slots of an engine of the server before, or of one before a change of its model, and the engine on which they count. */
interface Counted extends EngineSlots {
  resident: Resident | undefined
}

/**
 * Counts the slots that requests of the server before still use: those of an engine that was taken over on that engine, and those of
 * an engine that infer only calls on the first one here of the same model with one of the same addresses. So it counts the slots of
 * an engine that infer only calls, too, whose model was changed or removed: both are the same server, which has one limit.
 */
export function openSlotsElsewhere(
  handed: UsedSlots = new Map(),
  residency: () => Pick<Residency, 'residents' | 'occupy' | 'release'>,
) {
  const all = new Map(Array.from(handed, ([id, used]): [string, Counted] => [id, { ...used, resident: undefined }]))

  /** Engines whose model was changed or removed since, by id. */
  const replaced = new Map<string, Counted>()

  const countedOn = ({ resident }: Counted): Resident | undefined =>
    resident?.serves.residents.includes(resident) ? resident : undefined

  function isSame(resident: Resident, engineId: string, { modelId, addresses }: EngineSlots): boolean {
    if (resident.engineId === engineId) return true
    if (resident.serves.model.id !== modelId || resident.state === 'stopping') return false
    return addressesOf(resident).some(address => addresses.includes(address))
  }

  function occupy(resident: Resident, slots: number): void {
    resident.granted = (resident.granted ?? 0) + slots
    for (let taken = 0; taken < slots; taken++) residency().occupy(resident)
  }

  function release(resident: Resident, slots: number): void {
    resident.granted = (resident.granted ?? 0) - slots
    for (let given = 0; given < slots; given++) residency().release(resident, null)
  }

  function setSlots(engineId: string, one: Counted, slots: number): void {
    const counted = countedOn(one)
    const before = counted ? one.slots : 0
    one.slots = slots
    one.resident =
      counted ??
      residency()
        .residents()
        .find(resident => isSame(resident, engineId, one))
    if (!one.resident) return
    if (slots > before) occupy(one.resident, slots - before)
    else release(one.resident, before - slots)
  }

  return {
    /** How many slots of an engine of the server before are used. */
    of: (engineId: string): number => all.get(engineId)?.slots ?? 0,
    /** An engine begins here: slots that count on no other count on it. */
    begun(resident: Resident): void {
      for (const old of residency().residents()) {
        const { engineId, serves, leases: slots } = old
        if (slots === 0 || !serves.retired || replaced.has(engineId)) continue
        const one = { modelId: serves.model.id, addresses: addressesOf(old), slots, resident: undefined }
        replaced.set(engineId, one)
      }
      for (const [engineId, one] of [...all, ...replaced])
        if (one.slots > 0 && !countedOn(one) && isSame(resident, engineId, one)) {
          one.resident = resident
          occupy(resident, one.slots)
        }
    },
    /** A request has ended of an engine whose model was changed or removed. */
    released({ engineId, leases }: Resident): void {
      const one = replaced.get(engineId)
      if (!one || leases >= one.slots) return
      const counted = countedOn(one)
      const given = one.slots - leases
      one.slots = leases
      if (leases === 0) replaced.delete(engineId)
      if (counted) release(counted, given)
    },
    ofFleet: {
      usedSlots() {
        const used = new Map<string, EngineSlots>()
        for (const [engineId, one] of all) {
          const { modelId, addresses, slots } = one
          if (slots > 0 && !countedOn(one)) used.set(engineId, { modelId, addresses, slots })
        }
        for (const one of residency().residents()) {
          const { engineId, serves, leases: slots } = one
          const old = replaced.get(engineId)
          if (slots > 0 && !(old && countedOn(old)))
            used.set(engineId, { modelId: serves.model.id, addresses: addressesOf(one), slots })
        }
        return used
      },
      usedElsewhere(now) {
        for (const [id, used] of now) if (!all.has(id)) all.set(id, { ...used, slots: 0, resident: undefined })
        for (const [id, one] of all) setSlots(id, one, now.get(id)?.slots ?? 0)
      },
    } satisfies Pick<Fleet, 'usedSlots' | 'usedElsewhere'>,
  }
}
export type SlotsElsewhere = ReturnType<typeof openSlotsElsewhere>
