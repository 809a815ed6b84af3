import type { BucketWidth, UsageGroup, UsageSums } from '../../core/store/store.ts'
import { organizationIdFor } from '../accounts/account-client.ts'
import { type Client, dataOf } from '../client/client.ts'

/** The usage to read; times are Unix seconds. */
export interface UsageOptions {
  /** Id or name; undefined for the only one or the default. */
  organization: string | undefined
  start: number
  end: number
  width: BucketWidth
  groupBy: UsageGroup
}

export type UsageResult = Record<UsageGroup, string | null> & UsageSums
export interface UsageBucket {
  start_time: number
  end_time: number
  results: UsageResult[]
}
/** Usage as the API answers it, with the buckets of all pages. */
export interface Usage {
  organization_id: string
  start_time: number
  end_time: number
  bucket_width: BucketWidth
  currency: string
  totals: UsageSums
  spend_limit: { monthly_limit: number | null; spent: number }
  buckets: UsageBucket[]
}
type Page = Usage & { next_page: string | null }

/** Maximum number of pages, in case a server always reports more. */
const maxPages = 10_000

/** Reads all pages of usage. */
export async function readUsage(client: Client, options: UsageOptions): Promise<Usage> {
  const { start, end, width, groupBy } = options
  const organization = await organizationIdFor(client, options.organization)
  const pageAt = async (page: string | undefined): Promise<Page> => {
    const query = { start_time: start, end_time: end, bucket_width: width, group_by: [groupBy], page }
    const params = { path: { organization }, query }
    return (await dataOf(client.api.GET('/api/organizations/{organization}/usage', { params }))) as Page
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
