import type { Log } from '../core/log.ts'
import type { DeviceProcess } from '../core/models/fleet.ts'
import type { NewPause } from '../core/models/pause.ts'
import type { Clock } from './clock.ts'
import type { openEngineEffects } from './engine-effects.ts'
import { openPauses } from './pauses/pauses.ts'
import { namesOfOthers, runningPrograms } from './pauses/programs.ts'
import type { Memory } from './placement/memory.ts'
import { idsOfDevices } from './placement/named-cards.ts'
import type { Resident } from './residency/model-state.ts'

/** Opens the pauses of the devices of this machine. `changed`: see `PauseOptions`. */
export async function openFleetPauses(options: {
  dataDir: string
  log: Log
  clock: Clock
  /** The pauses in the configuration. */
  quiet?: () => readonly NewPause[]
  memory: Pick<Memory, 'devices' | 'left' | 'released'>
  residents: () => readonly Resident[]
  engines: Pick<ReturnType<typeof openEngineEffects>, 'exited'>
  deviceProcesses: () => Promise<ReadonlyMap<string, readonly DeviceProcess[]>>
  changed: (how: { atOnce: boolean }) => void
}) {
  const { memory, residents, engines, deviceProcesses, quiet } = options
  const pauses = await openPauses({
    ...options,
    devices: memory.devices,
    ...(quiet && { configured: quiet }),
    idsOf: names => idsOfDevices(names, memory.devices(), memory.left()),
    running: async names => runningPrograms(names, namesOfOthers(await deviceProcesses())),
  })
  return {
    ...pauses,
    /** Resolves when no engine is left on the devices that are paused now, and the cards show their memory as free. */
    async released(): Promise<void> {
      const leaving = residents().filter(({ devices }) => devices.some(id => pauses.of(id)))
      await Promise.all(leaving.map(resident => engines.exited(resident.engineId)))
      await memory.released(leaving.flatMap(({ devices }) => devices))
    },
  }
}
export type FleetPauses = Awaited<ReturnType<typeof openFleetPauses>>
