import type { Encoding } from '../../core/cpu/image-work.ts'
import type { JobRecord } from '../../core/store/store.ts'
import type { Preview } from '../../core/tasks/run-job.ts'
import type { Owners } from '../http/request/owners.ts'

/** Limits of an unfinished image from an engine. */
const rules = {
  formats: ['jpeg', 'png', 'webp'],
  maxBytes: 1 << 20,
  maxPixels: 4_194_304,
  maxSide: 4096,
} as const
const highestQuality = 80

/**
 * Returns an unfinished image of a job in another format, written by infer, because nobody has checked the bytes of the
 * engine. Undefined if they are no valid image, which is logged.
 */
export async function unfinishedImage(
  job: Pick<JobRecord, 'id'>,
  { bytes }: Preview,
  { format, quality }: Encoding,
  { cpu, log }: Owners<'cpu' | 'log'>,
): Promise<Buffer | undefined> {
  try {
    return Buffer.from(await cpu.encode(bytes, rules, { format, quality: Math.min(quality, highestQuality) }))
  } catch (thrown) {
    log.warn('An engine sent an unfinished image that cannot be read', { job: job.id }, thrown)
    return undefined
  }
}
