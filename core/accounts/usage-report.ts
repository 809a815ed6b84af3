import { invalid } from '../failure.ts'
import { monthOf } from '../month.ts'
import {
  type BucketWidth,
  bucketEnd,
  bucketStart,
  type OrganizationLimits,
  type Store,
  type UsageCursor,
  type UsageDimension,
  type UsageGroup,
  type UsageQuery,
  type UsageSums,
} from '../store/store.ts'
import { csvHeader } from '../store/usage-text.ts'
import { type SpendReading, type SpendView, spendReading, spendView } from './spend-view.ts'

/** A request for usage. Times are Unix seconds; an absent start is the start of this month, an absent end is now. */
export interface UsageRequest {
  organizationId: string
  /** The effective limits of the organization. */
  limits: Pick<OrganizationLimits, 'monthlySpendLimit'>
  start: number | undefined
  end: number | undefined
  width: BucketWidth
  groupBy: readonly UsageGroup[]
  only: Partial<Record<UsageDimension, readonly string[]>>
  /** Most buckets of a page. */
  limit: number | undefined
  page: string | undefined
}

/** The first page of usage, or a later one. `buckets` is JSON text: parsing it would block the event loop. */
export interface UsageReport {
  organization_id: string
  start_time: number
  end_time: number
  bucket_width: BucketWidth
  currency: string
  totals: UsageSums
  /** `hard` is always true: work beyond the limit is refused. */
  spend_limit: SpendView & { hard: boolean }
  has_more: boolean
  next_page: string | null
  buckets: string
}

/** Most results of a page: 2 MB of text. */
const pageResults = 5_000
/** Most rows of a part of a CSV file: 150 kB of text. */
const csvRows = 1_000

type SpendReads = Pick<Store['spend'], 'read' | 'held'>

/** What the store knows of the spending of an organization in the month of `at`. */
async function storedSpend(
  store: { spend: SpendReads },
  organizationId: string,
  limit: number | null,
  at: number,
): Promise<SpendReading> {
  const period = monthOf(at)
  const [spends, holds] = await Promise.all([store.spend.read(period.start), store.spend.held()])
  const spent = spends.find(
    row => row.organizationId === organizationId && row.originId === null && row.month === period.start,
  )
  const own = holds.filter(hold => hold.organizationId === organizationId)
  const held = own.reduce((sum, hold) => sum + hold.held, 0)
  return spendReading({ spent: spent?.spent ?? 0, held, limit, period })
}

/**
 * Opens the reports of usage. `currency` is that of the prices. `spendOf` reads what a running server counts against the
 * limit of an organization; without it the store is read.
 */
export function openUsageReports({
  store,
  currency = 'USD',
  now = Date.now,
  spendOf = (organizationId, limit) => storedSpend(store, organizationId, limit, now()),
}: {
  store: Pick<Store, 'usage'> & { spend: SpendReads }
  currency?: string
  now?: () => number
  spendOf?: (organizationId: string, limit: number | null) => SpendReading | Promise<SpendReading>
}) {
  function queryOf(request: UsageRequest, format: 'json' | 'csv'): UsageQuery {
    const { organizationId, width, groupBy, only, limit } = request
    const window = usageWindow(request, Math.floor(now() / 1000))
    const { usual, most } = pageBuckets[width]
    const page = request.page === undefined ? undefined : readCursor(request.page, { ...window, width })
    const size = { buckets: Math.min(limit ?? usual, most), results: format === 'csv' ? csvRows : pageResults }
    return { organizationId, ...window, width, groupBy, only, ...size, page, format }
  }

  return {
    /** Reads one page. Throws Failure `invalid_value` for a time or a cursor that makes no sense. */
    async read(request: UsageRequest): Promise<UsageReport> {
      const query = queryOf(request, 'json')
      const { organizationId, from, to, width } = query
      const { totals, text, next } = await store.usage.read(query)
      const spend = spendView(await spendOf(organizationId, request.limits.monthlySpendLimit))
      return {
        organization_id: organizationId,
        start_time: from,
        end_time: to,
        bucket_width: width,
        currency,
        totals,
        spend_limit: { ...spend, hard: true },
        has_more: next !== null,
        next_page: next && cursorText(next),
        buckets: text,
      }
    },
    /**
     * Reads all rows as CSV, a part at a time: the header first. A part without rows is empty, so that a reader who has
     * left can stop a long time without usage. Throws like `read`, before the first part.
     */
    csv(request: UsageRequest): AsyncGenerator<string> {
      const query = { ...queryOf(request, 'csv'), buckets: pageBuckets[request.width].most }
      return (async function* () {
        yield csvHeader(query.groupBy)
        for (let page = query.page; ; ) {
          const { text, next } = await store.usage.read({ ...query, page })
          yield text
          if (next === null) return
          page = next
        }
      })()
    },
    /** The start of the bucket of now, Unix seconds. */
    currentBucket: (width: BucketWidth): number => bucketStart(Math.floor(now() / 1000), width),
  }
}
export type UsageReports = ReturnType<typeof openUsageReports>

/** The longest time that minutes are read for, seconds. */
const minutesSpan = 86_400

/** How many buckets a page has by default, and at most. */
export const pageBuckets: Record<BucketWidth, { usual: number; most: number }> = {
  '1m': { usual: 60, most: 1440 },
  '1h': { usual: 24, most: 744 },
  '1d': { usual: 31, most: 366 },
  month: { usual: 12, most: 120 },
}

/**
 * The time of a request, rounded to whole buckets: from the start of the first bucket to the end of the last. Unix
 * seconds. Throws Failure `invalid_value` if it is empty, or too long for minutes.
 */
function usageWindow(
  { start, end, width }: { start: number | undefined; end: number | undefined; width: BucketWidth },
  now: number,
): { from: number; to: number } {
  const until = end ?? now
  const since = start ?? (width === '1m' ? until - 3600 : bucketStart(Math.min(until, now), 'month'))
  if (until < since || (end !== undefined && until === since))
    throw invalid('end_time', "'end_time' must be later than 'start_time'.")
  const from = bucketStart(since, width)
  const last = bucketStart(until, width)
  const to = last === until && last > from ? last : bucketEnd(last, width)
  if (width === '1m' && to - from > minutesSpan + 60)
    throw invalid('bucket_width', "Buckets of '1m' cover at most 24 hours. Send a shorter time, or '1h'.")
  return { from, to }
}

/** A cursor as the text that callers send back. */
const cursorText = ({ start, offset }: UsageCursor): string => `${start}.${offset}`

/** Reads a cursor. Throws Failure `invalid_value` if it does not belong to these buckets. */
function readCursor(text: string, { from, to, width }: { from: number; to: number; width: BucketWidth }): UsageCursor {
  const [, start, offset] = /^(\d{1,12})\.(\d{1,9})$/.exec(text) ?? []
  const cursor = { start: Number(start), offset: Number(offset) }
  if (
    start === undefined ||
    cursor.start < from ||
    cursor.start >= to ||
    bucketStart(cursor.start, width) !== cursor.start
  )
    throw invalid('page', "This is no 'next_page' of a request with the same times and bucket width.")
  return cursor
}
