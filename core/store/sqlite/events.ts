import type { JobEvent, JobEventType } from '../store.ts'
import type { Connection } from './database.ts'

/** How long events are kept. */
export const eventLifetimeMs = 24 * 3_600_000

/**
 * Writes down what happens to jobs, in the transaction in which it happens: every change of status has its event, so
 * that whoever follows them knows the status without asking. `attempt` is that of the job after the change.
 */
export function openEvents(connection: Connection) {
  const insert = connection.prepare(
    'INSERT INTO events (number, organization_id, type, attempt, at) VALUES (?, ?, ?, ?, ?)',
  )
  return {
    add(number: number | bigint, organizationId: string, type: JobEventType, attempt: number, at: number): void {
      insert.run(number, organizationId, type, attempt, at)
    },
  }
}
export type Events = ReturnType<typeof openEvents>

/**
 * Forgets up to `most` events from before `before`, oldest first and up to the first that is younger, so that what is
 * left has no gaps, whatever the clock did. Returns how many.
 */
export const forgetEvents = (connection: Connection) => {
  const oldest = connection.prepare<[number], { sequence: number; at: number }>(
    'SELECT sequence, at FROM events ORDER BY sequence LIMIT ?',
  )
  const forget = connection.prepare('DELETE FROM events WHERE sequence <= ?')
  return (before: number, most: number): number => {
    let last = 0
    for (const { sequence, at } of oldest.iterate(most)) {
      if (at >= before) break
      last = sequence
    }
    return last === 0 ? 0 : forget.run(last).changes
  }
}

/** What is read of events; short statements on a read-only connection. */
export function eventReads(connection: Connection) {
  const columns = 'sequence, type, jobs.id AS jobId, events.attempt, at FROM events JOIN jobs USING (number)'
  const ofOrganization = connection.prepare<[string, number, number], JobEvent>(
    `SELECT ${columns} WHERE events.organization_id = ? AND sequence > ? ORDER BY sequence LIMIT ?`,
  )
  const ofJob = connection.prepare<[string, string, number, number], JobEvent>(
    `SELECT ${columns} WHERE number = (SELECT number FROM jobs WHERE organization_id = ? AND id = ?) AND sequence > ?
     ORDER BY sequence LIMIT ?`,
  )
  // The last that was given and not the highest that is there: it does not go back when events are forgotten.
  const last = connection.prepare<[], number>(`SELECT seq FROM sqlite_sequence WHERE name = 'events'`).pluck()
  return {
    after: (organizationId: string, want: { sequence: number; jobId?: string; limit: number }): JobEvent[] =>
      want.jobId === undefined
        ? ofOrganization.all(organizationId, want.sequence, want.limit)
        : ofJob.all(organizationId, want.jobId, want.sequence, want.limit),
    last: (): number => last.get() ?? 0,
  }
}
