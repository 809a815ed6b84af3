import type { Owners } from '../owners.ts'
import { executionSummary } from './execution-record.ts'
import { sharedEnd } from './job-event.ts'
import { summaryText } from './job-record.ts'

/** How many unfinished jobs, and how many unfinished executions, a snapshot lists: the newest. */
const maxShown = 50
/** For so long readers get the same snapshot unless there was an event. */
const keptMs = 1_000
/** While many readers come, they get the same snapshot for so long in any case, and read on from there. */
const sharedMs = 100

/** The unfinished jobs and executions of an organization at one place in the event log. */
interface OrganizationSnapshot {
  /** The sequence of the last event that the lists may miss nothing of. Readers go on behind it. */
  sequence: number
  /** The JSON object `{jobs, executions, has_more}` as the end of its record. All readers share these bytes. */
  end: Buffer
}

interface Kept {
  made: Promise<OrganizationSnapshot>
  /** Monotonic milliseconds. */
  at: number
  sequence: number
}

/**
 * Snapshots of organizations, each shared by all readers that come at about the same time. A snapshot takes milliseconds
 * of the event loop, and thousands of readers come at once when a server or a network is back.
 */
export function openOrganizationSnapshots(owners: Pick<Owners, 'executions' | 'jobs'>) {
  const { executions, jobs } = owners
  const kept = new Map<string, Kept>()

  async function make(organizationId: string, sequence: number): Promise<OrganizationSnapshot> {
    const pages = [
      await jobs.list(organizationId, { status: 'processing', kind: 'async', limit: maxShown }),
      await jobs.list(organizationId, { status: 'pending', kind: 'async', limit: maxShown }),
    ]
    const found = pages.flatMap(page => page.jobs)
    const more = pages.some(({ next }) => next !== null) || found.length > maxShown
    const executed = [
      await executions.list(organizationId, { status: 'running', limit: maxShown }),
      await executions.list(organizationId, { status: 'pending', limit: maxShown }),
    ].flatMap(page => page.executions)
    const listed = found.slice(0, maxShown).map(job => summaryText(job, owners))
    const shown = JSON.stringify(executed.slice(0, maxShown).map(executionSummary))
    return { sequence, end: sharedEnd(`{"jobs":[${listed.join(',')}],"executions":${shown},"has_more":${more}}`) }
  }

  /**
   * Returns a snapshot that misses no event, or none before the last 100 ms while many readers come (`manyReaders`). It is not
   * older than the event that the reader had last (`resume`). What happened since is in the log behind its sequence.
   */
  return async (
    organizationId: string,
    { resume = 0, manyReaders = false }: { resume?: number | undefined; manyReaders?: boolean } = {},
  ): Promise<OrganizationSnapshot> => {
    const sequence = await jobs.events.last()
    // An id from before a backup was restored may be ahead of all events that there are.
    const atLeast = Math.min(resume, sequence)
    const now = performance.now()
    const last = kept.get(organizationId)
    const ageMs = last ? now - last.at : Number.POSITIVE_INFINITY
    if (last?.sequence === sequence && ageMs < keptMs) return last.made
    if (last && manyReaders && last.sequence >= atLeast && ageMs < sharedMs) return last.made
    // The place in the log is from before the lists: what happens in between is told twice rather than not at all.
    const next: Kept = { made: make(organizationId, sequence), at: now, sequence }
    kept.set(organizationId, next)
    const forget = () => {
      if (kept.get(organizationId) === next) kept.delete(organizationId)
    }
    setTimeout(forget, keptMs).unref()
    next.made.catch(forget)
    return next.made
  }
}
export type OrganizationSnapshots = ReturnType<typeof openOrganizationSnapshots>
