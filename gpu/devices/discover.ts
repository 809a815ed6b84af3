import type { Discovery } from './device.ts'
import { parseSliceMemory, parseSlices, type Slice } from './mig.ts'
import { devicesOf, fewFields, fields, meaning, parseCards, queryArguments } from './nvidia.ts'
import { nvidiaSmi, type RunOptions } from './nvidia-smi.ts'

/** The NVIDIA cards of this machine. Never throws: what is wrong stands in `reason`. */
export async function discover(options: RunOptions = {}): Promise<Discovery> {
  let of: readonly string[] = fields
  let answer = await nvidiaSmi(queryArguments(of), options)
  if (meaning(answer)?.again) {
    of = fewFields
    answer = await nvidiaSmi(queryArguments(of), options)
  }
  const wrong = meaning(answer)
  if (wrong) return { devices: [], reason: wrong.reason, broken: wrong.broken }
  const cards = parseCards(answer.stdout, of)
  const devices = devicesOf(cards, cards.some(card => card.mig) ? await slicesOf(options) : [])
  const reason = devices.length > 0 ? null : 'nvidia-smi answered, but with no card that can be used.'
  return { devices, reason, broken: devices.length === 0 }
}

/** Only the listing has the UUIDs with every driver, only the XML the memory. Without the XML the memory is estimated. */
async function slicesOf(options: RunOptions): Promise<Slice[]> {
  const [listing, xml] = await Promise.all([nvidiaSmi(['-L'], options), nvidiaSmi(['-q', '-x'], options)])
  return parseSlices(listing.stdout, parseSliceMemory(xml.stdout))
}
