import type { JobRecord, LogLine, Store } from '../store/store.ts'
import type { LiveRuns } from './live-runs.ts'

/** What the runs of a job have said, oldest first: the stored ones, and the one under way. */
export async function allLines(
  { organizationId, id }: Pick<JobRecord, 'organizationId' | 'id'>,
  { store, live }: { store: Pick<Store['jobs'], 'logs'>; live: Pick<LiveRuns, 'find'> },
): Promise<LogLine[]> {
  const stored = async () => JSON.parse(await store.logs(organizationId, id)) as LogLine[]
  const run = live.find(id)
  const before = await stored()
  // The run may have ended during the look, and its lines with it been stored.
  if (live.find(id) !== run) return stored()
  const now = run?.lines() ?? []
  const [first] = now
  // Committed, but its end has not been heard of here yet.
  const known = first && before.some(({ at, message }) => at === first.at && message === first.message)
  return known ? before : [...before, ...now]
}
