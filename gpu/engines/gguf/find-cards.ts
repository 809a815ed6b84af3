import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { amdCards } from '../../devices/amd.ts'
import { cpuDevice } from '../../devices/cpu.ts'
import type { Discovery } from '../../devices/device.ts'
import { mergeCards } from '../../devices/merge-cards.ts'
import { discover } from '../../devices/nvidia-smi.ts'
import { openVulkanDevices, type VulkanSearch } from './vulkan-devices.ts'

/**
 * Finds the cards by nvidia-smi, by the driver of AMD and by the Vulkan backend. `changed` is called when the Vulkan backend
 * has found others, which takes a second or two when a driver or build is new.
 */
export function openCardSearch(search: VulkanSearch, changed?: () => void) {
  const vulkan = openVulkanDevices(search, changed)
  return {
    /** The cards as far as they are known. Never throws. */
    async cards(): Promise<Discovery> {
      const { environment } = search
      const [nvidia, amd, addresses] = await Promise.all([discover({ environment }), amdCards(), nvidiaAddresses()])
      const mainBytes = cpuDevice().totalBytes
      const found = { nvidia: nvidia.devices, addresses, amd, vulkan: vulkan.current(), mainBytes }
      const devices = mergeCards(found)
      const reason = devices.length > 0 && !nvidia.broken ? null : nvidia.reason
      return { devices, reason, broken: nvidia.broken, ...(nvidia.lost && { lost: nvidia.lost }) }
    },
    /** Resolves when the devices of the Vulkan backend are known. */
    settled: vulkan.settled,
  }
}

/** Finds the cards once. Never throws. */
export async function findCards(search: VulkanSearch): Promise<Discovery> {
  const found = openCardSearch(search)
  await found.settled()
  return found.cards()
}

/** PCI addresses of NVIDIA's cards by UUID, as the driver lists them; empty for other drivers and in most containers. */
async function nvidiaAddresses(folder = '/proc/driver/nvidia/gpus'): Promise<Map<string, string>> {
  const addresses = new Map<string, string>()
  for (const address of await readdir(folder).catch(() => [])) {
    const text = await readFile(join(folder, address, 'information'), 'utf8').catch(() => '')
    const uuid = /^GPU UUID:\s*(GPU-\S+)/m.exec(text)?.[1]
    if (uuid !== undefined) addresses.set(uuid, address.toLowerCase())
  }
  return addresses
}
