import type { PlannedDevice } from '../../core/models/model-plan.ts'
import { formatBytes, type Sizing } from '../engines/gguf/sizing.ts'

type Device = Pick<PlannedDevice, 'id' | 'capacityBytes' | 'fault' | 'paused' | 'neededBytes'>

/** The paused devices for which a model waits, and those of its kind that are used. */
const dividedByPause = (devices: readonly Device[]): { awaited: Device[]; used: Device[] } => ({
  awaited: devices.filter(({ paused, neededBytes }) => paused !== null && neededBytes > 0),
  used: devices.filter(({ paused, fault }) => paused === null && fault === null),
})

/**
 * Says what lets a model run now that waits for paused devices; null if it waits for none. `smaller`: a layout with which it
 * fits on the devices that are used. Pure.
 */
export function pauseAdvice(devices: readonly Device[], smaller: Sizing | null): string | null {
  const { awaited, used } = dividedByPause(devices)
  if (awaited.length === 0) return null
  const names = awaited.map(({ id }) => `--device ${id}`).join(' ')
  const resume = `To load it now, use ${awaited.length === 1 ? awaited[0]!.id : 'them'} again with: infer gpu resume ${names}.`
  if (used.length === 0) return resume
  const others = used.map(({ id }) => id).join(' and ')
  if (smaller)
    return `${resume} Or set context_length: ${smaller.context} and concurrency: ${smaller.parallel}, with which it fits on ${others}.`
  const room = formatBytes(used.reduce((sum, { capacityBytes }) => sum + capacityBytes, 0))
  return `${resume} It does not fit on ${others}, with ${room} for models: a smaller model or quantization would.`
}

/** The same; `layoutOn` returns the layout with which the model fits on some devices, null if there is none. */
export async function adviceWhilePaused(
  devices: readonly Device[],
  layoutOn: (ids: readonly string[]) => Promise<Sizing | null>,
): Promise<string | null> {
  const { awaited, used } = dividedByPause(devices)
  const smaller = awaited.length > 0 && used.length > 0 ? await layoutOn(used.map(({ id }) => id)) : null
  return pauseAdvice(devices, smaller)
}
