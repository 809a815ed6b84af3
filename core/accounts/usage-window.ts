import { Failure } from '../failure.ts'
import { type Month, monthOf } from '../month.ts'
import type { BucketWidth, UsageCursor } from '../store/store.ts'

/** The calendar month in UTC of a time, Unix seconds. */
function monthAt(at: number): Month {
  const { start, end } = monthOf(at * 1000)
  return { start: start / 1000, end: end / 1000 }
}

const seconds = { '1m': 60, '1h': 3600, '1d': 86_400 } as const

/** The start of the bucket of a time. Unix seconds. */
export const bucketStart = (at: number, width: BucketWidth): number =>
  width === 'month' ? monthAt(at).start : Math.floor(at / seconds[width]) * seconds[width]

const nextBucket = (start: number, width: BucketWidth): number =>
  width === 'month' ? monthAt(start).end : start + seconds[width]

/** The latest time of a request, Unix seconds: the end of the year 9999. */
export const latestTime = 253_402_300_799
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
export function usageWindow(
  { start, end, width }: { start: number | undefined; end: number | undefined; width: BucketWidth },
  now: number,
): { from: number; to: number } {
  const until = end ?? now
  const since = start ?? (width === '1m' ? until - 3600 : monthAt(Math.min(until, now)).start)
  if (until < since || (end !== undefined && until === since))
    throw new Failure('invalid_value', "'end_time' must be later than 'start_time'.", { param: 'end_time' })
  const from = bucketStart(since, width)
  const last = bucketStart(until, width)
  const to = last === until && last > from ? last : nextBucket(last, width)
  if (width === '1m' && to - from > minutesSpan + 60)
    throw new Failure('invalid_value', "Buckets of '1m' cover at most 24 hours. Send a shorter time, or '1h'.", {
      param: 'bucket_width',
    })
  return { from, to }
}

/** A cursor as the text that callers send back. */
export const cursorText = ({ start, offset }: UsageCursor): string => `${start}.${offset}`

/** Reads a cursor. Throws Failure `invalid_value` if it does not belong to these buckets. */
export function readCursor(
  text: string,
  { from, to, width }: { from: number; to: number; width: BucketWidth },
): UsageCursor {
  const [, start, offset] = /^(\d{1,12})\.(\d{1,9})$/.exec(text) ?? []
  const cursor = { start: Number(start), offset: Number(offset) }
  if (
    start === undefined ||
    cursor.start < from ||
    cursor.start >= to ||
    bucketStart(cursor.start, width) !== cursor.start
  )
    throw new Failure('invalid_value', "This is no 'next_page' of a request with the same times and bucket width.", {
      param: 'page',
    })
  return cursor
}
