import { readdir, readFile, realpath } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { Device } from './device.ts'

const amdVendor = '0x1002'

/** Reads a file of sysfs, trimmed; null where the card or its driver does not have it. Asynchronous: a read may wake a card. */
const textOf = async (...path: string[]): Promise<string | null> =>
  (await readFile(join(...path), 'utf8').catch(() => null))?.trim() || null
const numberOf = async (...path: string[]): Promise<number | null> => {
  const value = Number((await textOf(...path)) ?? Number.NaN)
  return Number.isFinite(value) && value >= 0 ? value : null
}
const namesIn = (...path: string[]): Promise<string[]> => readdir(join(...path)).catch(() => [])
const byNumber = (a: string, b: string): number => Number(/\d+/.exec(a)) - Number(/\d+/.exec(b))

/**
 * Finds AMD cards by what their driver, amdgpu, shows in sysfs, in the order of their PCI addresses. A card whose memory
 * is not shown cannot be used and is left out. Never throws. Source: "Memory usage" and "hwmon" of the kernel's amdgpu
 * documentation. The ids are assigned by the caller.
 */
export async function amdCards({ sys = '/sys', share = '/usr/share' } = {}): Promise<Omit<Device, 'id'>[]> {
  const drm = join(sys, 'class/drm')
  const cards = (await namesIn(drm)).filter(name => /^card\d+$/.test(name)).toSorted(byNumber)
  const hip = await hipNumbers(sys)
  const found = await Promise.all(cards.map(name => cardAt(join(drm, name, 'device'), hip, share)))
  return found.filter(card => card !== null).toSorted((a, b) => ((a.pci ?? '') < (b.pci ?? '') ? -1 : 1))
}

async function cardAt(
  folder: string,
  hip: ReadonlyMap<string, number>,
  share: string,
): Promise<Omit<Device, 'id'> | null> {
  if ((await textOf(folder, 'vendor')) !== amdVendor) return null
  const totalBytes = await numberOf(folder, 'mem_info_vram_total')
  if (!totalBytes) return null
  const pci = basename(await realpath(folder).catch(() => folder)).toLowerCase()
  const monitor = join(folder, 'hwmon', (await namesIn(folder, 'hwmon'))[0] ?? '')
  const [usedBytes, percent, degrees, average, input, limit, name] = await Promise.all([
    numberOf(folder, 'mem_info_vram_used'),
    numberOf(folder, 'gpu_busy_percent'),
    numberOf(monitor, 'temp1_input'),
    numberOf(monitor, 'power1_average'),
    numberOf(monitor, 'power1_input'),
    numberOf(monitor, 'power1_cap'),
    nameOf(folder, share),
  ])
  const scaled = (value: number | null, by: number) => (value === null ? null : value / by)
  const number = hip.get(pci)
  return {
    kind: 'amd',
    name,
    totalBytes,
    usedBytes,
    utilization: percent === null ? null : Math.min(1, percent / 100),
    temperatureCelsius: scaled(degrees, 1e3),
    powerWatts: scaled(average ?? input, 1e6),
    powerLimitWatts: scaled(limit, 1e6),
    cudaId: null,
    uuid: null,
    cores: null,
    pci,
    ...(number !== undefined && { hipId: String(number) }),
  }
}

/** The name that a server card has in sysfs, else that of its chip in the list of libdrm. */
async function nameOf(folder: string, share: string): Promise<string> {
  const own = await textOf(folder, 'product_name')
  if (own !== null) return own
  const [device, revision] = (await Promise.all([textOf(folder, 'device'), textOf(folder, 'revision')])).map(text =>
    Number(text ?? Number.NaN),
  )
  const chips = (await textOf(share, 'libdrm/amdgpu.ids')) ?? ''
  for (const line of chips.split('\n')) {
    const [chip, step, ...name] = line.split(',').map(part => part.trim())
    if (Number.parseInt(chip!, 16) === device && Number.parseInt(step ?? '', 16) === revision) return name.join(', ')
  }
  return Number.isNaN(device) ? 'AMD GPU' : `AMD GPU ${device!.toString(16)}`
}

/** The numbers of the cards in HIP_VISIBLE_DEVICES by PCI address: ROCm counts the nodes of the kernel's topology. */
async function hipNumbers(sys: string): Promise<Map<string, number>> {
  const nodes = join(sys, 'class/kfd/kfd/topology/nodes')
  const numbers = new Map<string, number>()
  for (const node of (await namesIn(nodes)).toSorted(byNumber)) {
    if (!(await numberOf(nodes, node, 'gpu_id'))) continue
    const properties = (await textOf(nodes, node, 'properties')) ?? ''
    const property = (name: string) => Number(new RegExp(`^${name} (\\d+)`, 'm').exec(properties)?.[1] ?? 0)
    const location = property('location_id')
    const hex = (value: number, digits: number) => value.toString(16).padStart(digits, '0')
    const [bus, slot] = [(location >> 8) & 0xff, (location >> 3) & 0x1f]
    const address = `${hex(property('domain'), 4)}:${hex(bus, 2)}:${hex(slot, 2)}.${location & 7}`
    numbers.set(address, numbers.size)
  }
  return numbers
}
