import type { Model } from '../core/models/model.ts'
import type { Clock } from './clock.ts'
import type { openEngineEffects } from './engine-effects.ts'
import type { FleetOptions } from './fleet-options.ts'
import type { Launch } from './launcher/launcher.ts'
import type { Launches } from './launcher/launches.ts'
import { bookedResident, type Choice, chooseLeft, type LeftEngine, leftResident } from './left-engines.ts'
import type { Memory } from './placement/memory.ts'
import { newModelState, type Resident } from './residency/model-state.ts'
import type { DeviceCapacity } from './residency/place.ts'
import type { Residency } from './residency/residency.ts'

/**
 * Takes over the engines that an earlier server has left. Those of this machine that cannot be are ended before this resolves,
 * so that their memory is free before anything is measured or loaded; those that still answer requests of the server before
 * end after these. A pool may take for ever: it is not waited for.
 */
export async function openTakeOver(
  options: Omit<Choice, 'models'> &
    Pick<FleetOptions, 'log'> & {
      models: () => readonly Model[]
      launches: Pick<Launches, 'left' | 'adopt' | 'stop'>
      clock: Clock
    },
) {
  const { launches, clock, log } = options
  const choose = () => chooseLeft(launches, { ...options, models: options.models() })
  const { taken, ended } = await choose()
  /** Launches that are taken over or ended, so that no later look does it twice. */
  const seen = new Set([...taken, ...ended.map(one => one.launch)].map(({ launchId }) => launchId))

  async function end(launch: Pick<Launch, 'launchId' | 'engineId' | 'modelId'>, reason: string): Promise<void> {
    const fields = { model: launch.modelId, engine: launch.engineId, reason }
    log.info(`Ending the engine of '${launch.modelId}', which an earlier server has left`, fields)
    await launches.stop(launch.launchId, 0)
  }

  const endAll = (those: typeof ended) => Promise.all(those.map(({ launch, reason }) => end(launch, reason)))
  const { here = [], inPools = [] } = Object.groupBy(ended, ({ launch }) =>
    launch.pool === undefined ? 'here' : 'inPools',
  )
  void endAll(inPools)
  await endAll(here)
  let booked: readonly Resident[] = taken.map(bookedResident)
  let takeNow: ((one: LeftEngine) => Promise<void>) | undefined
  return {
    hasEnded: here.length > 0,
    /** What is booked for the engines until `begin`. */
    booked: () => booked,
    /** Looks again for engines that were left: those of a pool that has not answered at the start. */
    async again(): Promise<void> {
      const late = await choose()
      const isNew = ({ launchId }: { launchId: string }) => !seen.has(launchId) && seen.add(launchId)
      const failed = (thrown: unknown) => log.error('An engine of a pool could not be taken over', {}, thrown)
      const take = takeNow
      if (take) await Promise.all(late.taken.filter(isNew).map(one => take(one).catch(failed)))
      void endAll(late.ended.filter(({ launch }) => isNew(launch)))
    },
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
        const { model, note, ending } = one
        const isHere = note.booked.placement.pool === undefined
        const visible = JSON.stringify(parts.memory.visibleTo(bookedResident(one)))
        if (isHere && (!note.booked.devices.every(isUsable) || visible !== JSON.stringify(note.start.visible)))
          return await end({ ...one, modelId: model.id }, 'Its devices have changed, or are paused.')
        const { placement, slots } = note.booked
        // One that is to change is an engine of the model before its change: requests that wait get another.
        const state =
          ending === undefined
            ? parts.residency.upsert(model, placement, slots)
            : { ...newModelState(model, placement, slots), retired: true }
        const resident = leftResident(state, one, clock.now())
        parts.residency.takeOver(resident)
        parts.engines.takeOver(resident, one)
        parts.known(model.id)
        if (ending !== undefined)
          log.info(`The engine of '${model.id}' ends after the requests of the server before`, {
            model: model.id,
            engine: one.engineId,
            reason: ending,
          })
      }
      takeNow = take
      const taking = taken.map(take)
      booked = []
      await Promise.all(taking)
    },
  }
}
