import type { Caller } from '../core/accounts/accounts.ts'
import { Failure } from '../core/failure.ts'
import { type Region, regions, requiredLabel } from '../core/schemas/region.ts'

const header = 'X-Region'

/** Returns the region in the header of a request; undefined without one. Throws Failure `invalid_value`. */
export function regionIn(given: string | string[] | undefined): Region | undefined {
  if (given === undefined) return undefined
  const region = regions.find(one => one === given)
  if (region) return region
  throw new Failure('invalid_value', `'${header}' must be one of: ${regions.join(', ')}.`, { param: header })
}

/**
 * Lets all work of a request ask for the region in its body, besides that of its header. Throws Failure `invalid_value` if
 * they differ.
 */
export function askForRegion(caller: Caller, region: Region | undefined): void {
  const label = requiredLabel(region)
  if (label === null) return
  const before = requiredLabel(caller.region)
  if (before !== null && before !== label)
    throw new Failure(
      'invalid_value',
      `'region' is ${label}, and the header '${header}' is ${before}. Send one of them.`,
      {
        param: 'region',
      },
    )
  caller.region = label
}
