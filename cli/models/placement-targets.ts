import { hostEnvironment } from '../../core/config.ts'
import { openLog } from '../../core/log.ts'
import type { Model } from '../../core/models/model.ts'
import { cpuDevice } from '../../gpu/devices/cpu.ts'
import type { Device } from '../../gpu/devices/device.ts'
import { discover } from '../../gpu/devices/nvidia-smi.ts'
import type { PlacementTarget } from '../../gpu/estimate/estimate.ts'
import { openCardBackends } from '../../gpu/placement/card-backend.ts'
import { bookable } from '../../gpu/placement/memory.ts'
import { presetOf } from '../../gpu/presets/presets.ts'
import { probeWrapper } from '../../gpu/sandbox/probe-wrapper.ts'

/**
 * Computes the memory that engines can use on this machine, as the server does. GPUs are queried once, on first use;
 * the first query about the built-in engine can take minutes, because its GPU builds are tested.
 */
export function openPlacementTargets(dataDir: string) {
  const environment = hostEnvironment()
  let discovery: Promise<Device[]> | undefined
  let backends: Promise<ReturnType<typeof openCardBackends>> | undefined
  const cards = () => (discovery ??= discover({ environment }).then(({ devices }) => devices))

  const mainMemory = (): number => Math.floor(cpuDevice().totalBytes * bookable.cpu)

  async function openBackends() {
    const devices = await cards()
    const { wrapper } = await probeWrapper(environment)
    const log = openLog('error', () => undefined)
    return openCardBackends({ dataDir, environment, wrapper, memory: { devices: () => devices }, log })
  }

  return {
    cards,
    /** Returns the main memory that models may use, in bytes. */
    mainMemory,
    /** Returns where the server would place the model. */
    async targetFor(model: Model): Promise<PlacementTarget> {
      const preset = presetOf(model)
      const slots = model.concurrency ?? preset.slots
      const onProcessor = preset.runsOn === 'cpu' || model.devices === 'cpu'
      const devices = onProcessor ? [] : await cards()
      const usable =
        !preset.needsBackend ||
        (devices.length > 0 && (await (await (backends ??= openBackends())).find(model)) !== null)
      if (!onProcessor && (preset.runsOn === 'gpu' || (devices.length > 0 && usable))) {
        const capacity = Math.max(0, ...devices.map(({ totalBytes }) => Math.floor(totalBytes * bookable.nvidia)))
        return { kind: 'nvidia', devices: typeof model.devices === 'number' ? model.devices : 1, capacity, slots }
      }
      return { kind: 'cpu', devices: 1, capacity: mainMemory(), slots }
    },
  }
}
export type PlacementTargets = ReturnType<typeof openPlacementTargets>
