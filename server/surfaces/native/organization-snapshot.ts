import type { Owners } from '../../http/request/owners.ts'
import { executionSummary } from '../../views/execution-record.ts'
import { sharedEnd } from '../../views/job-event.ts'
import { summaryText } from '../../views/job-record.ts'

/** Maximum number of unfinished jobs, and of unfinished executions, in a snapshot: the newest. */
const maxShown = 50
/** Milliseconds for which readers get the same snapshot if there was no event. */
const keptMs = 1_000
/** Milliseconds for which many simultaneous readers get the same snapshot in any case, and read on from there. */
const sharedMs = 100

/** The unfinished jobs and executions of an organization at one position in the event log. */
interface OrganizationSnapshot {
  /** The lists include all events up to this sequence. Readers continue after it. */
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
 * Creates snapshots of organizations, each shared by all readers that connect at about the same time. A snapshot takes
 * milliseconds of the event loop, and thousands of readers reconnect at once after a restart or a network failure.
 */
export function openOrganizationSnapshots(owners: Owners<'executions' | 'jobs'>) {
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
   * Returns a snapshot that includes all events; while many readers connect (`manyReaders`), it may be up to 100 ms
   * old. It is not older than the reader's last event (`resume`). Later events are in the log after its sequence.
   */
  return async (
    organizationId: string,
    { resume = 0, manyReaders = false }: { resume?: number | undefined; manyReaders?: boolean } = {},
  ): Promise<OrganizationSnapshot> => {
    const sequence = await jobs.events.last()
    // After a backup was restored, the id may be higher than all ids in the log.
    const atLeast = Math.min(resume, sequence)
    const now = performance.now()
    const last = kept.get(organizationId)
    const ageMs = last ? now - last.at : Number.POSITIVE_INFINITY
    if (last?.sequence === sequence && ageMs < keptMs) return last.made
    if (last && manyReaders && last.sequence >= atLeast && ageMs < sharedMs) return last.made
    // The sequence is read before the lists, so that an event in between is reported twice and never missed.
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
