import { hostEnvironment } from '../core/config.ts'
import { cardProcesses } from './devices/card-processes.ts'
import { cpuDevice } from './devices/cpu.ts'
import type { Discovery } from './devices/device.ts'
import { discover } from './devices/discover.ts'
import { probeWrapper } from './launcher/probe.ts'
import type { Wrapper } from './launcher/wrapper.ts'
import type { DeviceSource } from './memory.ts'

/** What this machine can do, as far as that is found out by starting programs. */
export interface Machine {
  /** How engines are started. */
  wrapper: Wrapper
  devices: DeviceSource
}

/**
 * Tries the wrappers and asks for the cards, both at once. Never throws. Nothing else that is done at a start takes as
 * long, and it waits for nobody: whoever has other things to open begins with this.
 */
export async function lookAtMachine(environment = hostEnvironment()): Promise<Machine> {
  const look = () => discover({ environment })
  const [{ wrapper }, found] = await Promise.all([probeWrapper(environment), look()])
  let first: Discovery | undefined = found
  const cards = async () => {
    const known = first
    first = undefined
    return known ?? look()
  }
  return { wrapper, devices: { cards, processes: () => cardProcesses({ environment }), cpu: cpuDevice() } }
}
