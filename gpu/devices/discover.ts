import type { Discovery } from './device.ts'
import { parseSliceMemory, parseSlices, type Slice } from './mig.ts'
import { devicesOf, fewFields, fields, parseCards, problemOf, queryArguments } from './nvidia.ts'
import { nvidiaSmi, type RunOptions } from './nvidia-smi.ts'

/** Finds the NVIDIA cards of this machine. Never throws: `reason` says what is wrong. */
export async function discover(options: RunOptions = {}): Promise<Discovery> {
  let queried: readonly string[] = fields
  let run = await nvidiaSmi(queryArguments(queried), options)
  if (problemOf(run)?.retryWithFewFields) {
    queried = fewFields
    run = await nvidiaSmi(queryArguments(queried), options)
  }
  const problem = problemOf(run)
  if (problem) return { devices: [], reason: problem.reason, broken: problem.broken }
  const cards = parseCards(run.stdout, queried)
  const devices = devicesOf(cards, cards.some(card => card.mig) ? await slicesOf(options) : [])
  const reason = devices.length > 0 ? null : 'nvidia-smi reported no card that can be used.'
  return { devices, reason, broken: devices.length === 0 }
}

/** Every driver lists the UUIDs with `-L`; only the XML has the memory. Without the XML the memory is estimated. */
async function slicesOf(options: RunOptions): Promise<Slice[]> {
  const [listing, xml] = await Promise.all([nvidiaSmi(['-L'], options), nvidiaSmi(['-q', '-x'], options)])
  return parseSlices(listing.stdout, parseSliceMemory(xml.stdout))
}
