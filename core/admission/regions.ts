import { Failure } from '../failure.ts'
import type { ModelSetEntry } from '../models/engine-traits.ts'
import { type Region, type RegionLabel, requiredLabel } from '../schemas/region.ts'

/** What limits the region of a piece of work. */
export interface RegionDemands {
  /** The regions that the request and its workflow ask for. */
  asked: readonly (Region | null | undefined)[]
  /** The organization that is restricted to a region. */
  organization: { name: string; region: string | null }
}

/**
 * Returns the label that the engines of the model must have; null if any will do. Throws Failure `region_restricted` for a
 * model outside the region of the organization, and `no_capacity` for one outside a region that is asked for; no retry
 * helps against either. `offered`: the models that the caller may use.
 */
export function requireRegion(
  { id, region }: Pick<ModelSetEntry, 'id' | 'region'>,
  { asked, organization }: RegionDemands,
  offered: () => Iterable<Pick<ModelSetEntry, 'region'>>,
): RegionLabel | null {
  const restricted = requiredLabel(organization.region as Region | null)
  if (restricted !== null && region !== restricted)
    throw new Failure(
      'region_restricted',
      `The organization '${organization.name}' is restricted to the region ${restricted}, and the model '${id}' runs ${where(region)}.`,
    )
  for (const one of asked) {
    const label = requiredLabel(one)
    if (label !== null && region !== label) throw outside({ id, region }, label, offered())
  }
  return asked.some(one => requiredLabel(one) !== null) ? region! : restricted
}

/** The failure of a model that is not in a region that is asked for. */
export function outside(
  { id, region }: Pick<ModelSetEntry, 'id' | 'region'>,
  label: RegionLabel,
  offered: Iterable<Pick<ModelSetEntry, 'region'>>,
): Failure {
  const labels = [...new Set([...offered].flatMap(one => one.region ?? []))].toSorted()
  const there =
    labels.length === 0
      ? 'No model here has a region.'
      : `Regions of the models here: ${labels.join(', ')}. GET /api/model-status has the region of each.`
  const message = `The model '${id}' has no engine in the region ${label}: it runs ${where(region)}. ${there}`
  return new Failure('no_capacity', message, { final: true })
}

const where = (region: RegionLabel | undefined): string => (region === undefined ? 'in no region' : `in ${region}`)
