import { join } from 'node:path'
import { z } from 'zod'
import { openPlans } from '../../core/accounts/plans.ts'
import { openUsageReports } from '../../core/accounts/usage-report.ts'
import { remote } from '../../core/config.ts'
import { openLog } from '../../core/log.ts'
import { readConfig } from '../../core/models/config.ts'
import type { BucketWidth, UsageGroup, UsageSums } from '../../core/store/store.ts'
import { chooseOrganization } from '../accounts/organizations.ts'

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
export interface Bucket {
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
  buckets: Bucket[]
}
type Page = Usage & { next_page: string | null }

/** Maximum number of pages, in case a server always reports more. */
const maxPages = 10_000

const Answer = z.looseObject({
  organization_id: z.string(),
  currency: z.string(),
  totals: z.looseObject({ requests: z.number(), cost: z.number() }),
  buckets: z.array(z.looseObject({ start_time: z.number(), results: z.array(z.looseObject({ cost: z.number() })) })),
  next_page: z.string().nullable(),
})
const Me = z.object({ organization: z.object({ id: z.string() }) })

/** Reads all pages of usage: from the server at INFER_URL, else from the data directory, with or without a server. */
export async function readUsage(dataDir: string, options: UsageOptions): Promise<Usage> {
  await using source = remote() ? await openRemote(dataDir, options) : await openLocal(dataDir, options)
  const first = await source.page(undefined)
  const { next_page, ...usage } = first
  for (let next = next_page, pages = 1; next !== null && pages < maxPages; pages++) {
    const page = await source.page(next)
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

interface Source extends AsyncDisposable {
  page(cursor: string | undefined): Promise<Page>
}

async function openLocal(dataDir: string, { organization, groupBy, ...options }: UsageOptions): Promise<Source> {
  const { openAdminStore } = await import('../../core/store/sqlite/admin.ts')
  const store = await openAdminStore(dataDir)
  try {
    const found = chooseOrganization(await store.organizations.list(), organization)
    const config = readConfig(join(dataDir, 'infer.yaml'), false)
    const plans = openPlans({ configured: config.plans, log: openLog('error') })
    const reports = openUsageReports({ store, currency: config.currency })
    return {
      async page(page) {
        const { buckets, ...report } = await reports.read({
          ...options,
          organizationId: found.id,
          limits: plans.limitsOf(found),
          groupBy: [groupBy],
          only: {},
          limit: 1_440,
          page,
        })
        return { ...report, buckets: JSON.parse(buckets) as Bucket[] }
      },
      [Symbol.asyncDispose]: () => store.close(),
    }
  } catch (thrown) {
    await store.close()
    throw thrown
  }
}

async function openRemote(dataDir: string, options: UsageOptions): Promise<Source> {
  const { openClient } = await import('../client/client.ts')
  const client = openClient(dataDir)
  const { organization, start, end, width, groupBy } = options
  const id = organization ?? (await client.ask({ method: 'GET', path: '/api/me', answer: Me })).organization.id
  return {
    async page(page) {
      const query = new URLSearchParams({
        start_time: String(start),
        end_time: String(end),
        bucket_width: width,
        group_by: groupBy,
        ...(page === undefined ? {} : { page }),
      })
      const path = `/api/organizations/${encodeURIComponent(id)}/usage?${query.toString()}`
      const answer: unknown = await client.ask({ method: 'GET', path, answer: Answer })
      return answer as Page
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  }
}
