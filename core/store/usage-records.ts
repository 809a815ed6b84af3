import { monthOf } from '../month.ts'

/** By what usage is grouped and filtered. */
export const usageDimensions = ['model_id', 'task', 'token_id', 'user_id', 'workflow_id', 'status'] as const
export type UsageDimension = (typeof usageDimensions)[number]

/** What a result may be grouped by: a dimension, or the day in UTC. */
export const usageGroups = [...usageDimensions, 'day'] as const
export type UsageGroup = (typeof usageGroups)[number]

export const bucketWidths = ['1m', '1h', '1d', 'month'] as const
export type BucketWidth = (typeof bucketWidths)[number]

const widths = { '1m': 60, '1h': 3600, '1d': 86_400 } as const

/** The start of the bucket of a time, and the end of a bucket, excluded. Unix seconds. */
export const bucketStart = (at: number, width: BucketWidth): number =>
  width === 'month' ? monthOf(at * 1000).start / 1000 : Math.floor(at / widths[width]) * widths[width]
export const bucketEnd = (start: number, width: BucketWidth): number =>
  width === 'month' ? monthOf(start * 1000).end / 1000 : start + widths[width]

/** Usage of finished work of one organization. Times are Unix seconds on the boundaries of buckets, in UTC. */
export interface UsageQuery {
  organizationId: string
  from: number
  /** Excluded. */
  to: number
  width: BucketWidth
  groupBy: readonly UsageGroup[]
  /** Only these values; an absent dimension takes all. */
  only: Partial<Record<UsageDimension, readonly string[]>>
  /** Most buckets of the page. */
  buckets: number
  /** Most results of the page. */
  results: number
  /** Where the page begins; absent for the first. */
  page?: UsageCursor | undefined
  format: 'json' | 'csv'
}

/** The start of a bucket, and how many of its results came on pages before. */
export interface UsageCursor {
  start: number
  offset: number
}

/** The sums of finished work in their order, each with what divides the unit of its column: the API has larger units. */
export const sumDivisors = {
  /** Synchronous requests. */
  requests: 1,
  /** Background jobs. */
  jobs: 1,
  /** Those of both that have failed. */
  failed: 1,
  input_tokens: 1,
  cached_tokens: 1,
  output_tokens: 1,
  reasoning_tokens: 1,
  images: 1,
  video_seconds: 1000,
  audio_seconds: 1000,
  characters: 1,
  documents: 1,
  gpu_seconds: 1000,
  energy_wh: 3_600_000,
  /** Currency units. */
  cost: 1e6,
  queue_seconds: 1000,
  run_seconds: 1000,
}
/** Sums of finished work, in the units of the API. */
export type UsageSums = Record<keyof typeof sumDivisors, number>

export interface UsagePage {
  /** Of the whole time, not of the page. */
  totals: UsageSums
  /** The buckets of the page: a JSON list, or the rows of a CSV file without its header. */
  text: string
  next: UsageCursor | null
}

/** What finished work has used, summed in the transaction of its ledger row; kept longer than jobs. */
export interface UsageStore {
  read(query: UsageQuery): Promise<UsagePage>
}
