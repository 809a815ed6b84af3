import type { PlannedDevice } from '../../core/models/model-plan.ts'
import { formatBytes, type Sizing } from '../engines/gguf/sizing.ts'

type Device = Pick<PlannedDevice, 'id' | 'capacityBytes' | 'fault' | 'paused' | 'neededBytes'>

/**
 * Says what lets a model run now that waits for paused devices; null if it waits for none. `layoutOn` returns the layout with
 * which it fits on the devices that are used; null if there is none.
 */
export async function pauseAdvice(
  devices: readonly Device[],
  layoutOn: (ids: readonly string[]) => Promise<Pick<Sizing, 'context' | 'parallel'> | null>,
): Promise<string | null> {
  const awaited = devices.filter(({ paused, neededBytes }) => paused !== null && neededBytes > 0)
  if (awaited.length === 0) return null
  const names = awaited.map(({ id }) => `--device ${id}`).join(' ')
  const resume = `To load it now, use ${awaited.length === 1 ? awaited[0]!.id : 'them'} again with: infer gpu resume ${names}.`
  const used = devices.filter(({ paused, fault }) => paused === null && fault === null)
  if (used.length === 0) return resume
  const ids = used.map(({ id }) => id)
  const others = ids.join(' and ')
  const smaller = await layoutOn(ids)
  if (smaller)
    return `${resume} Or set context_length: ${smaller.context} and concurrency: ${smaller.parallel}, with which it fits on ${others}.`
  const room = formatBytes(used.reduce((sum, { capacityBytes }) => sum + capacityBytes, 0))
  return `${resume} It does not fit on ${others}, with ${room} for models: a smaller model or quantization would.`
}
