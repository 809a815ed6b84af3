import { type Device, noReadings } from './device.ts'
import { makerOf, productName, type VulkanDevice } from './vulkan.ts'

export interface FoundCards {
  /** The cards and slices of nvidia-smi, with their ids. */
  nvidia: readonly Device[]
  /** PCI addresses of NVIDIA's cards by UUID. */
  addresses: ReadonlyMap<string, string>
  amd: readonly Omit<Device, 'id'>[]
  vulkan: readonly VulkanDevice[]
  /** Main memory that this process may use, bytes. */
  mainBytes: number
}

/**
 * Joins what the tools of the makers and the Vulkan backend have found: each card is one device. Cards of NVIDIA keep
 * the numbers of nvidia-smi; the next numbers are for AMD's, and then for those of Vulkan alone. Pure.
 */
export function mergeCards({ nvidia, addresses, amd, vulkan, mainBytes }: FoundCards): Device[] {
  const devices: Device[] = nvidia.map(card => {
    const pci = card.uuid === null ? undefined : addresses.get(card.uuid)
    return pci === undefined ? card : { ...card, pci }
  })
  const add = (card: Omit<Device, 'id'>): void => {
    const last = Math.max(-1, ...devices.map(({ id }) => Number(/^gpu(\d+)/.exec(id)?.[1])))
    devices.push({ ...card, id: `gpu${last + 1}` })
  }
  for (const card of amd) add(card)
  for (const found of vulkan) {
    const one = byVulkan(found, mainBytes)
    const same = devices.findIndex(device => isSameCard(device, one))
    const known = devices[same]
    if (known === undefined) {
      // A card in MIG mode is used by its slices, which Vulkan does not know.
      if (!devices.some(({ id, name }) => id.includes('.') && name.startsWith(`${one.name} MIG `))) add(one)
      continue
    }
    const memory = one.isUnified && { totalBytes: one.totalBytes, usedBytes: null, isUnified: true }
    devices[same] = { ...known, ...memory, vulkanId: String(found.index) }
  }
  const intel = devices
    .filter(({ kind }) => kind === 'intel')
    .toSorted((a, b) => ((a.pci ?? '') < (b.pci ?? '') ? -1 : 1))
  return devices.map(device =>
    device.kind === 'intel' ? { ...device, levelZeroId: String(intel.indexOf(device)) } : device,
  )
}

function byVulkan({ index, name, isUnified, totalBytes, pci }: VulkanDevice, mainBytes: number): Omit<Device, 'id'> {
  return {
    kind: makerOf(name),
    name: productName(name),
    totalBytes: isUnified ? mainBytes : totalBytes,
    usedBytes: null,
    ...noReadings,
    cudaId: null,
    vulkanId: String(index),
    uuid: null,
    cores: null,
    ...(pci !== null && { pci }),
    ...(isUnified && { isUnified }),
  }
}

/** By address, and where one is unknown by maker and name; of equal cards, the first that has no number of Vulkan yet. */
const isSameCard = (known: Device, { kind, name, pci }: Omit<Device, 'id'>): boolean =>
  known.vulkanId === undefined &&
  (known.pci !== undefined && pci !== undefined
    ? known.pci === pci
    : known.kind === kind && known.name.toLowerCase() === name.toLowerCase())
