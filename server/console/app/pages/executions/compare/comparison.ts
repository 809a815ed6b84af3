import type { Schema } from '../../../api/schema.ts'
import { costText, knownDuration } from '../../../components/format.ts'

export type ComparedNode = Schema<'ExecutionComparison'>['nodes'][number]

/** What is compared of a node. */
export type ComparedPart = ComparedNode['different'][number] | 'time' | 'cost'

/** The address of the page that compares two executions. */
export const compareHref = (first: string, second: string): string => `/executions/${first}/compare/${second}`

type OfVersion = Pick<Schema<'ExecutionSummary'>, 'workflow_id' | 'workflow_version'>

/** The address of what differs between the versions of two executions; undefined if they have the same or other workflows. */
export function versionsHref(one: OfVersion, other: OfVersion): string | undefined {
  const { workflow_id: id, workflow_version: version } = one
  if (id === null || id !== other.workflow_id || version === null || other.workflow_version === null) return undefined
  const [older, newer] = [version, other.workflow_version].toSorted((a, b) => a - b)
  return older === newer ? undefined : `/workflows/${id}/versions?older=${older}&newer=${newer}`
}

/** How a cost is shown; a dash while it is not known. */
export const knownCost = (cost: number | null, currency: string): string =>
  cost === null ? '–' : costText(cost, currency)

/** What differs between two runs of a node, with times and costs as far as they are shown. Nothing if one run is missing. */
export function differentParts({ first, second, different }: ComparedNode): ComparedPart[] {
  if (!first || !second) return []
  return [
    ...different,
    ...(knownDuration(first.duration_ms) === knownDuration(second.duration_ms) ? [] : (['time'] as const)),
    ...(knownCost(first.cost, '') === knownCost(second.cost, '') ? [] : (['cost'] as const)),
  ]
}

/** Whether two runs of a node did other work or had another end, whatever they took; true if one of them is missing. */
export const isDifferent = ({ first, second, different }: ComparedNode): boolean =>
  !first || !second || different.length > 0
