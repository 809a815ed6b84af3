import { hostEnvironment } from '../core/config.ts'
import { cpuDevice } from './devices/cpu.ts'
import type { Discovery } from './devices/device.ts'
import { cardProcesses, discover } from './devices/nvidia-smi.ts'
import { makeUvmDevice } from './devices/uvm.ts'
import type { DeviceSource } from './placement/memory.ts'
import { probeSandbox } from './sandbox/probe.ts'
import { probeWrapper } from './sandbox/probe-wrapper.ts'

/**
 * Probes the wrappers, the sandboxes and the cards in parallel. Never throws. This is the slowest part of the server's
 * start and depends on nothing else, so callers start it first.
 */
export async function probeMachine(environment = hostEnvironment()) {
  const findCards = () => discover({ environment })
  const [{ wrapper }, sandbox, found] = await Promise.all([
    probeWrapper(environment),
    probeSandbox(environment),
    findCards(),
  ])
  if (found.devices.length > 0) await makeUvmDevice(environment.PATH ?? '/usr/bin:/sbin')
  let first: Discovery | undefined = found
  const cards = async () => {
    const known = first
    first = undefined
    return known ?? findCards()
  }
  const devices: DeviceSource = { cards, processes: () => cardProcesses({ environment }), cpu: cpuDevice() }
  return { wrapper, sandbox, devices }
}

export type ProbedMachine = Awaited<ReturnType<typeof probeMachine>>
