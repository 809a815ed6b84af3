import type { JobFilter, JobRecord, Store } from '../store/store.ts'
import { inTimeSlices } from '../time-slice.ts'

/** A page of a list of jobs, newest first; `next` is the cursor of the next page, null at the end. */
export interface JobPage {
  jobs: JobRecord[]
  next: string | null
}

/**
 * Merges the first pages of several lists. A list that ended its page early has looked at no job after its `next`: so the
 * merged page ends at the newest of these.
 */
export function mergedPage(pages: readonly JobPage[], limit: number): JobPage {
  const ends = pages.flatMap(({ next }) => (next === null ? [] : [next]))
  const end = ends.reduce<string | null>((newest, next) => (newest === null || next > newest ? next : newest), null)
  const known = pages.flatMap(({ jobs }) => jobs.filter(({ id }) => end === null || id >= end))
  const sorted = known.sort((a, b) => (a.id < b.id ? 1 : -1))
  const jobs = sorted.slice(0, limit)
  return { jobs, next: sorted.length > limit ? jobs.at(-1)!.id : end }
}

/** Organizations that are read at once: what is held meanwhile does not grow with their number. */
const atOnce = 32

/**
 * Lists the jobs of these organizations together, newest first. Yields to the event loop between the organizations, and
 * holds at most `atOnce` pages besides the merged one.
 */
export async function listTogether(
  store: Pick<Store['jobs'], 'list'>,
  organizationIds: readonly string[],
  filter: JobFilter,
): Promise<JobPage> {
  let merged: JobPage = { jobs: [], next: null }
  for (let first = 0; first < organizationIds.length; first += atOnce) {
    const reads: Promise<JobPage>[] = []
    await inTimeSlices(
      (function* () {
        for (const id of organizationIds.slice(first, first + atOnce)) {
          reads.push(store.list(id, filter))
          yield
        }
      })(),
    )
    merged = mergedPage([merged, ...(await Promise.all(reads))], filter.limit)
  }
  return merged
}
