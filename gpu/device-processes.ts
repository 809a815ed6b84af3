import { setTimeout as pause } from 'node:timers/promises'
import type { DeviceProcess } from '../core/models/fleet.ts'
import type { Device } from './devices/device.ts'
import { parentOf } from './launcher/processes.ts'
import type { DeviceSource } from './placement/memory.ts'
import type { Resident } from './residency/model-state.ts'

/** How long a result is reused: `infer status` asks every second, and each query starts a program. */
const freshMs = 2_000
/** How long a caller waits for a driver that hangs; after that it gets the previous result. */
const waitMs = 1_000

/** Queries the compute processes on each card, only when the returned function is called. */
export function openDeviceProcesses(
  source: Pick<DeviceSource, 'processes'>,
  devices: () => readonly Device[],
  residents: () => readonly Resident[],
  pidOf: (engineId: string) => number | null,
) {
  let latest: ReadonlyMap<string, readonly DeviceProcess[]> = new Map()
  let queriedAt = Number.NEGATIVE_INFINITY
  /** The engines and states at the last query. The result is outdated when an engine has started or ended since. */
  let queriedStates = ''
  let querying: Promise<void> | undefined

  const engineStates = () =>
    residents()
      .map(({ engineId, state }) => `${engineId} ${state}`)
      .join()

  async function query(): Promise<void> {
    queriedStates = engineStates()
    const found = await source.processes()
    const next = new Map<string, DeviceProcess[]>()
    for (const { id, uuid } of devices()) {
      const rows = found && uuid !== null ? (found.has(uuid) ? found.get(uuid) : []) : null
      if (!rows) continue
      const engines = enginesOn(id)
      next.set(id, await Promise.all(rows.map(async row => ({ ...row, engineId: await engineOf(row.pid, engines) }))))
    }
    latest = next
    queriedAt = performance.now()
  }

  /** PIDs of engines on this card only: in a container a PID of the host may equal the PID of an engine elsewhere. */
  function enginesOn(deviceId: string): Map<number, string> {
    const engines = new Map<number, string>()
    for (const resident of residents()) {
      const pid = resident.devices.includes(deviceId) ? pidOf(resident.engineId) : null
      if (pid !== null) engines.set(pid, resident.engineId)
    }
    return engines
  }

  /** `maxAgeMs`: how old the result may be. */
  return async (maxAgeMs = freshMs): Promise<ReadonlyMap<string, readonly DeviceProcess[]>> => {
    if (devices().every(({ uuid }) => uuid === null)) return new Map()
    if (performance.now() - queriedAt > maxAgeMs || queriedStates !== engineStates()) {
      querying ??= query().finally(() => (querying = undefined))
      await Promise.race([querying, pause(waitMs, undefined, { ref: false })])
    }
    return latest
  }
}

async function engineOf(pid: number, engines: ReadonlyMap<number, string>): Promise<string | null> {
  if (engines.size === 0) return null
  for (let at: number | undefined = pid; at !== undefined && at > 1; at = await parentOf(at)) {
    const engine = engines.get(at)
    if (engine !== undefined) return engine
  }
  return null
}
