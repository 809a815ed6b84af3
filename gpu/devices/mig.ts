/** MIG slices of a card. Sources: `nvidia-smi -L`, and `nvidia-smi -q -x` with its nvsmi_device_v12.dtd. */
export interface Slice {
  /** Index of its card. */
  card: number
  uuid: string
  profile: string
  totalBytes: number
  /** Null when only the estimate is known. */
  usedBytes: number | null
}

export type SliceMemory = Pick<Slice, 'totalBytes' | 'usedBytes'>

const mebibyte = 2 ** 20
const keyOf = (cardUuid: string, index: string): string => `${cardUuid} ${index}`

/**
 * Parses the memory of the slices from the XML of `nvidia-smi -q -x`, by the UUID of their card and their index there.
 * Slices whose memory cannot be read are missing; for any other text the result is empty.
 */
export function parseSliceMemory(xml: string): Map<string, SliceMemory> {
  const memory = new Map<string, SliceMemory>()
  for (const [, card] of xml.matchAll(/<gpu [^>]*>(.*?)<\/gpu>/gs)) {
    const uuid = /<uuid>\s*(GPU-[^\s<]+)/.exec(card!)?.[1]
    if (uuid === undefined) continue
    for (const [, slice] of card!.matchAll(/<mig_device>(.*?)<\/mig_device>/gs)) {
      const index = /<index>\s*(\d+)/.exec(slice!)?.[1]
      const usage = /<fb_memory_usage>(.*?)<\/fb_memory_usage>/s.exec(slice!)?.[1] ?? ''
      const total = /<total>\s*(\d+)\s*MiB/.exec(usage)?.[1]
      const used = /<used>\s*(\d+)\s*MiB/.exec(usage)?.[1]
      if (index === undefined || !Number(total)) continue
      memory.set(keyOf(uuid, index), {
        totalBytes: Number(total) * mebibyte,
        usedBytes: used === undefined ? null : Number(used) * mebibyte,
      })
    }
  }
  return memory
}

/**
 * Parses the slices of `nvidia-smi -L` and adds their measured memory. Without a measurement the size is taken from the
 * profile's name (`1g.18gb`) less 5 %: a slice has slightly less memory than its name says, and an engine fails where
 * more was booked than there is.
 */
export function parseSlices(listing: string, memory: ReadonlyMap<string, SliceMemory> = new Map()): Slice[] {
  const slices: Slice[] = []
  let card = -1
  let cardUuid = ''
  for (const line of listing.split('\n')) {
    const parent = /^GPU (\d+):.*?(?:\(UUID: ([^)]+)\))?\s*$/.exec(line)
    if (parent) {
      card = Number(parent[1])
      cardUuid = parent[2] ?? ''
    }
    const slice = /^\s+MIG (\S+)\s+Device\s+(\d+):\s+\(UUID: (MIG-[^)]+)\)/.exec(line)
    if (!slice || card < 0) continue
    const [, profile, index, uuid] = slice as unknown as [string, string, string, string]
    const size = /(\d+)gb/.exec(profile)?.[1]
    const measured = memory.get(keyOf(cardUuid, index))
    if (measured) slices.push({ card, uuid, profile, ...measured })
    else if (size !== undefined)
      slices.push({ card, uuid, profile, totalBytes: Math.floor(Number(size) * 2 ** 30 * 0.95), usedBytes: null })
  }
  return slices
}
