import { hostEnvironment } from '../core/config.ts'
import { cardProcesses } from './devices/card-processes.ts'
import { cpuDevice } from './devices/cpu.ts'
import type { Discovery } from './devices/device.ts'
import { discover } from './devices/discover.ts'
import { makeUvmDevice } from './devices/uvm.ts'
import { probeWrapper } from './launcher/probe.ts'
import type { Wrapper } from './launcher/wrapper.ts'
import type { DeviceSource } from './memory.ts'
import type { SandboxSupport } from './sandbox/level.ts'
import { probeSandbox } from './sandbox/probe.ts'

/** What this machine can do, as far as that is found out by starting programs. */
export interface Machine {
  /** How engines are started. */
  wrapper: Wrapper
  devices: DeviceSource
  /** How their sandboxes are made. */
  sandbox: SandboxSupport
}

/**
 * Tries the wrappers and sandboxes and asks for the cards, all at once. Never throws. Nothing else that is done at a start
 * takes as long, and it waits for nobody: whoever has other things to open begins with this.
 */
export async function probeMachine(environment = hostEnvironment()): Promise<Machine> {
  const look = () => discover({ environment })
  const [{ wrapper }, sandbox, found] = await Promise.all([
    probeWrapper(environment),
    probeSandbox(environment),
    look(),
  ])
  if (found.devices.length > 0) await makeUvmDevice(environment.PATH ?? '/usr/bin:/sbin')
  let first: Discovery | undefined = found
  const cards = async () => {
    const known = first
    first = undefined
    return known ?? look()
  }
  return { wrapper, sandbox, devices: { cards, processes: () => cardProcesses({ environment }), cpu: cpuDevice() } }
}
