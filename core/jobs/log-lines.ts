import type { JobRecord, LogLine, Store } from '../store/store.ts'
import type { LiveRuns } from './live-runs.ts'

/** The log lines of a job's runs, oldest first: the stored ones, and those of the current run. */
export async function allLines(
  { organizationId, id }: Pick<JobRecord, 'organizationId' | 'id'>,
  { store, live }: { store: Pick<Store['jobs'], 'logs'>; live: Pick<LiveRuns, 'find'> },
): Promise<LogLine[]> {
  const stored = async () => JSON.parse(await store.logs(organizationId, id)) as LogLine[]
  const run = live.find(id)
  const previous = await stored()
  // The run may have ended during the read, and its lines may be stored now.
  if (live.find(id) !== run) return stored()
  const current = run?.lines() ?? []
  const [first] = current
  // The end of the run is committed but not announced yet, so its lines are stored already.
  const known = first && previous.some(({ at, message }) => at === first.at && message === first.message)
  return known ? previous : [...previous, ...current]
}
