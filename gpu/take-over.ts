import type { Clock } from './clock.ts'
import type { openEngineEffects } from './engine-effects.ts'
import type { FleetOptions } from './fleet-options.ts'
import type { Launch } from './launcher/launcher.ts'
import type { Launches } from './launcher/launches.ts'
import { bookedResident, type Choice, chooseLeft, type LeftEngine, leftResident } from './left-engines.ts'
import type { Memory } from './placement/memory.ts'
import type { Resident } from './residency/model-state.ts'
import type { DeviceCapacity } from './residency/place.ts'
import type { Residency } from './residency/residency.ts'

/**
 * Takes over the engines that an earlier server has left. Those that cannot be are ended before this resolves, so that their
 * memory is free before anything is measured or loaded.
 */
export async function openTakeOver(
  options: Choice & Pick<FleetOptions, 'leasedElsewhere' | 'log'> & { launches: Launches; clock: Clock },
) {
  const { launches, clock, log, leasedElsewhere } = options
  const { taken, ended } = chooseLeft(launches, options)

  async function end(launch: Pick<Launch, 'launchId' | 'engineId' | 'modelId'>, reason: string): Promise<void> {
    const fields = { model: launch.modelId, engine: launch.engineId, reason }
    log.info(`Ending the engine of '${launch.modelId}', which an earlier server has left`, fields)
    await launches.stop(launch.launchId, 0)
  }

  await Promise.all(ended.map(({ launch, reason }) => end(launch, reason)))
  let booked: readonly Resident[] = taken.map(bookedResident)
  return {
    hasEnded: ended.length > 0,
    /** What is booked for the engines until `begin`. */
    booked: () => booked,
    /** Books the engines and asks each whether it works; ends those whose devices have changed. */
    async begin(parts: {
      memory: Pick<Memory, 'visibleTo'>
      capacities: () => readonly DeviceCapacity[]
      residency: Residency
      engines: Pick<ReturnType<typeof openEngineEffects>, 'takeOver'>
      /** Called for each model of which an engine was taken over. */
      known: (modelId: string) => void
    }): Promise<void> {
      const devices = new Map(parts.capacities().map(device => [device.id, device]))
      const isUsable = (id: string) => (devices.get(id)?.capacity ?? 0) > 0 && !devices.get(id)!.pause
      const take = async (one: LeftEngine): Promise<void> => {
        const { model, note } = one
        const visible = JSON.stringify(parts.memory.visibleTo(bookedResident(one)))
        if (!note.booked.devices.every(isUsable) || visible !== JSON.stringify(note.start.visible))
          return await end({ ...one, modelId: model.id }, 'Its devices have changed, or are paused.')
        const state = parts.residency.upsert(model, note.booked.placement, note.booked.slots)
        const resident = leftResident(state, one, clock.now(), leasedElsewhere?.get(one.engineId))
        parts.residency.takeOver(resident)
        parts.engines.takeOver(resident, one)
        parts.known(model.id)
      }
      const taking = taken.map(take)
      booked = []
      await Promise.all(taking)
    },
  }
}
