import type { DeviceKind } from './device.ts'

/** A device as the Vulkan backend of llama.cpp lists it. */
export interface ListedDevice {
  name: string
  /** Name of its driver. */
  driver: string
  /** Whether it has no memory of its own. */
  isUnified: boolean
  totalBytes: number
  /** Its address on the PCI bus, `0000:01:00.0`; null where the driver does not report it. */
  pci: string | null
}

export interface VulkanDevice extends ListedDevice {
  /** Its number in GGML_VK_VISIBLE_DEVICES, which counts the devices of all drivers in the order of the loader. */
  index: number
}

/**
 * Reads the devices from the log of llama.cpp. `onlyTotal`: the total memory in bytes if there is one device, which the
 * log does not have.
 */
export function parseListing(log: string, onlyTotal: number | undefined): ListedDevice[] {
  const placed = new Map(
    [...log.matchAll(/using device Vulkan(\d+) \(.*\) \(([^()]*)\) - (\d+) MiB free/g)].map(([, index, pci, free]) => [
      index,
      { pci: pci!, free: Number(free) * 2 ** 20 },
    ]),
  )
  return [...log.matchAll(/^ggml_vulkan: (\d+) = (.*) \(([^()]*)\) \| uma: (\d)/gm)].map(
    ([, index, name, driver, unified]) => {
      const { pci = '', free = 0 } = placed.get(index) ?? {}
      return {
        name: name!,
        driver: driver!,
        isUnified: unified === '1',
        totalBytes: onlyTotal ?? free,
        pci: /^[\da-f]{4,8}:[\da-f]{2}:[\da-f]{2}\.\d$/i.test(pci) ? pci.toLowerCase() : null,
      }
    },
  )
}

/** Whether two listings show the same device. */
export const isSameListed = (one: ListedDevice, other: ListedDevice): boolean =>
  one.pci !== null && other.pci !== null
    ? one.pci === other.pci && one.driver === other.driver
    : one.name === other.name && one.driver === other.driver

const makers: readonly [DeviceKind, RegExp][] = [
  ['nvidia', /\b(nvidia|geforce|quadro|tesla)\b/i],
  ['amd', /\b(amd|radeon)\b/i],
  ['intel', /\bintel\b/i],
]

/** The maker of a card, by its name. */
export const makerOf = (name: string): DeviceKind => makers.find(([, pattern]) => pattern.test(name))?.[0] ?? 'gpu'

/** The name of the product: Mesa's drivers add the name of the chip, `AMD Radeon RX 7900 XTX (RADV NAVI31)`. */
export const productName = (name: string): string => name.replace(/ \((RADV|NVK)\b[^()]*\)$/, '')
