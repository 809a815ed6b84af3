import { hostEnvironment } from '../core/config.ts'
import { openCardWatch } from './devices/card-watch.ts'
import { cpuDevice } from './devices/cpu.ts'
import type { Discovery } from './devices/device.ts'
import { cardProcesses } from './devices/nvidia-smi.ts'
import { makeUvmDevice } from './devices/uvm.ts'
import { backendsFolder } from './engines/gguf/backend-search.ts'
import { openCardSearch } from './engines/gguf/find-cards.ts'
import type { DeviceSource } from './placement/memory.ts'
import { probeSandbox } from './sandbox/probe.ts'
import { probeWrapper } from './sandbox/probe-wrapper.ts'

/**
 * Probes the wrappers, the sandboxes and the cards in parallel. Never throws. This is the slowest part of the server's
 * start and depends on nothing else, so callers start it first.
 */
export async function probeMachine(dataDir: string, environment = hostEnvironment()) {
  let hasChanged = false
  let changed: () => void = () => void (hasChanged = true)
  const probingWrapper = probeWrapper(environment)
  const search = openCardSearch(
    {
      folder: backendsFolder(dataDir, environment),
      environment,
      wrapper: probingWrapper.then(({ wrapper }) => wrapper),
    },
    () => changed(),
  )
  const watch = openCardWatch(environment)
  const findCards = async () => watch(await search.cards())
  const [{ wrapper }, sandbox, found] = await Promise.all([probingWrapper, probeSandbox(environment), findCards()])
  let first: Discovery | undefined = found
  let isPrepared = false
  const cards = async () => {
    const known = first ?? (await findCards())
    first = undefined
    // The driver may be installed while this process runs.
    if (!isPrepared && known.devices.some(({ cudaId }) => cudaId !== null)) {
      isPrepared = true
      await makeUvmDevice(environment.PATH ?? '/usr/bin:/sbin')
    }
    return known
  }
  const devices: DeviceSource = {
    cards,
    settled: search.settled,
    onChange(listener) {
      changed = listener
      if (hasChanged) listener()
    },
    processes: () => cardProcesses({ environment }),
    cpu: cpuDevice(),
  }
  return { wrapper, sandbox, devices }
}

export type ProbedMachine = Awaited<ReturnType<typeof probeMachine>>
