import type { BucketWidth, UsageGroup, UsageSums } from '../../core/store/store.ts'
import { noOrganization, organizationIdFor, reachedOrganizations } from '../accounts/account-client.ts'
import { type Client, dataOf } from '../client/client.ts'

/** What a row of usage is about. The organization is not a group of the API, which answers for one. */
export type Grouping = UsageGroup | 'organization_id'

/** The usage to read; times are Unix seconds. */
interface UsageOptions {
  /** Id or name; undefined for the only one, and for all that the client reaches if they are the groups. */
  organization: string | undefined
  start: number
  end: number
  width: BucketWidth
  groupBy: Grouping
}

type UsageResult = Partial<Record<Grouping, string | null>> & UsageSums
export interface UsageBucket {
  start_time: number
  end_time: number
  results: UsageResult[]
}
/** Usage as the API answers it, with the buckets of all pages. */
export interface Usage {
  /** Null for several organizations. */
  organization_id: string | null
  start_time: number
  end_time: number
  bucket_width: BucketWidth
  currency: string
  totals: UsageSums
  /** Undefined for several organizations. */
  spend_limit?: { monthly_limit: number | null; spent: number }
  buckets: UsageBucket[]
}
type Page = Usage & { next_page: string | null }

export const plus = (one: UsageSums, other: UsageSums): UsageSums =>
  Object.fromEntries(
    Object.entries(one).map(([name, value]) => [name, value + other[name as keyof UsageSums]]),
  ) as never

/** Maximum number of pages, in case a server always reports more. */
const maxPages = 10_000

/** Reads all pages of usage. */
export async function readUsage(client: Client, options: UsageOptions): Promise<Usage> {
  const { organization, groupBy } = options
  if (groupBy !== 'organization_id')
    return readOne(client, await organizationIdFor(client, organization), groupBy, options)
  const ids =
    organization === undefined
      ? (await reachedOrganizations(client, { mayBeDeleted: true })).map(({ id }) => id)
      : [await organizationIdFor(client, organization)]
  const all: Usage[] = []
  for (const id of ids) all.push(await readOne(client, id, undefined, options))
  return together(all)
}

/** Adds up the usage of organizations at the same time: a result for each that has used something. */
function together(all: readonly Usage[]): Usage {
  const [first, ...others] = all
  if (!first) throw noOrganization()
  const { spend_limit: _, ...facts } = first
  return {
    ...facts,
    organization_id: null,
    totals: others.reduce((sums, { totals }) => plus(sums, totals), first.totals),
    buckets: first.buckets.map((bucket, at) => ({
      ...bucket,
      results: all.flatMap(({ organization_id, buckets }) =>
        (buckets[at]?.results ?? []).map(result => ({ organization_id, ...result })),
      ),
    })),
  }
}

async function readOne(
  { api }: Client,
  organization: string,
  groupBy: UsageGroup | undefined,
  { start, end, width }: UsageOptions,
): Promise<Usage> {
  const pageAt = async (page: string | undefined): Promise<Page> => {
    const group_by = groupBy && [groupBy]
    const query = { start_time: start, end_time: end, bucket_width: width, group_by, page }
    const params = { path: { organization }, query }
    return (await dataOf(api.GET('/api/organizations/{organization}/usage', { params }))) as Page
  }
  const first = await pageAt(undefined)
  const { next_page, ...usage } = first
  for (let next = next_page, pages = 1; next !== null && pages < maxPages; pages++) {
    const page = await pageAt(next)
    for (const bucket of page.buckets) {
      const last = usage.buckets.at(-1)
      // A bucket with many results continues on the next page.
      if (last?.start_time === bucket.start_time) last.results.push(...bucket.results)
      else usage.buckets.push(bucket)
    }
    next = page.next_page
  }
  return usage
}
