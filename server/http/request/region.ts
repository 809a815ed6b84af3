import { invalid } from '../../../core/failure.ts'
import { type Region, regions, requiredLabel } from '../../../core/schemas/region.ts'
import type { ClientExchange } from './exchange.ts'

const header = 'X-Region'

/** Returns the region in the header of a request; undefined without one. Throws Failure `invalid_value`. */
export function regionIn(given: string | string[] | undefined): Region | undefined {
  if (given === undefined) return undefined
  const region = regions.find(one => one === given)
  if (region) return region
  throw invalid(header, `'${header}' must be one of: ${regions.join(', ')}.`)
}

/**
 * Lets all work of a request ask for a region: in its header or body. Throws Failure `invalid_value` if both are there and
 * differ.
 */
export function askForRegion(exchange: ClientExchange, region: Region | undefined): void {
  const label = requiredLabel(region)
  if (label === null) return
  const before = requiredLabel(exchange.caller.region)
  if (before !== null && before !== label)
    throw invalid('region', `'region' is ${label}, and the header '${header}' is ${before}. Send one of them.`)
  // A copy, because requests of the same token share the caller.
  exchange.caller = { ...exchange.caller, region: label }
}
