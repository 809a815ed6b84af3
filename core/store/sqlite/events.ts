import type { ExecutionEvent, ExecutionEventType, OrganizationEvent, OrganizationEventType } from '../event-types.ts'
import type { Statements } from '../method-table.ts'
import type { JobError, JobEvent, JobEventType } from '../store.ts'
import type { GroupEffects } from './commit-effects.ts'
import type { Connection } from './database.ts'
import { openInsertRows, type Value } from './insert-rows.ts'
import type { JobRow } from './job-reads.ts'
import type { StoredEvent, WebhookOutbox } from './webhook-outbox.ts'

/** How long events are kept. */
export const eventLifetimeMs = 24 * 3_600_000

const eventColumns = ['sequence', 'number', 'organization_id', 'type', 'attempt', 'at', 'execution', 'node', 'data']
/** How many events are inserted by one statement. */
const eventsAtOnce = 16

/**
 * Records what happens to jobs, in the transaction of the change: every change of status has its event, so that a
 * reader of the events always knows the status. `attempt` is that of the job after the change. Events are inserted
 * together, at the end of the transaction.
 */
export function openEvents(connection: Connection, outbox: Pick<WebhookOutbox, 'add'>, effects: GroupEffects) {
  const insertMany = openInsertRows(connection, 'events', eventColumns, eventsAtOnce)
  const insertOne = openInsertRows(connection, 'events', eventColumns, 1)
  const read = connection.scalar<number>`SELECT sequence FROM last_event`
  const save = connection.statement`UPDATE last_event SET sequence = ?`
  /**
   * The number of the last event of this transaction; read again in each, because another process may have written too.
   */
  let last: number | undefined
  const next = (): number => (last = (last ?? read.get()!) + 1)
  /** The events that are not inserted yet. */
  let waiting: Value[][] = []

  function insert(): void {
    let at = 0
    for (; at + eventsAtOnce <= waiting.length; at += eventsAtOnce) insertMany(waiting.slice(at, at + eventsAtOnce))
    for (; at < waiting.length; at++) insertOne([waiting[at]!])
    waiting = []
  }

  /** Records an event with the JSON text that belongs to it, and inserts its deliveries. */
  function record(event: Omit<StoredEvent, 'sequence'>, text: string | null = null): void {
    const { number, organizationId, type, attempt, at, execution, node } = event
    const sequence = next()
    waiting.push([sequence, number, organizationId, type, attempt, at, execution, node, text])
    outbox.add({ sequence, ...event })
  }

  return {
    /**
     * Adds an event of a job; with `execution` and `node` if it is a node's job. Those of an item have them only where people
     * must know of the item: when it begins to wait for them.
     */
    add(
      number: number,
      organizationId: string,
      type: JobEventType,
      attempt: number,
      at: number,
      execution: number | null = null,
      node: number | null = null,
    ): void {
      record({ number, organizationId, type, attempt, at, execution, node })
    },
    /** Adds the event of a job that waits again. `error`: why its attempt failed; null if the attempt was given back. */
    addRetry(job: RetriedJob, at: number, error: JobError | null): void {
      const { number, organizationId, attempt, item } = job
      const { execution, node } = item === null ? job : { execution: null, node: null }
      const event = { number, organizationId, type: 'job.retrying', attempt, at, execution, node }
      record(event, error && JSON.stringify(error))
    },
    /** Adds an event of an execution, or of a node or item without its job. */
    addOfExecution(
      execution: number,
      organizationId: string,
      type: ExecutionEventType,
      at: number,
      node: number | null = null,
      item: number | null = null,
    ): void {
      const event = { number: null, organizationId, type, attempt: 0, at, execution, node }
      if (item === null) record(event)
      else record({ ...event, item }, JSON.stringify({ item }))
    },
    /** Adds an event of the organization itself; `data` describes it. */
    addOfOrganization(organizationId: string, type: OrganizationEventType, data: object, at: number): void {
      const event = { number: null, organizationId, type, attempt: 0, at, execution: null, node: null, data }
      record(event, JSON.stringify(data))
      effects.add('organizations', organizationId)
    },
    /** Inserts what was recorded. Call it before events are read, and before rows are deleted that have events. */
    insert,
    mark() {
      // What was inserted since is rolled back with all else.
      const [snapshot, before] = [last, [...waiting]]
      return () => {
        last = snapshot
        waiting = before
      }
    },
    write(): void {
      insert()
      if (last !== undefined) save.run(last)
      last = undefined
    },
    forget(): void {
      last = undefined
      waiting = []
    },
  }
}
export type Events = ReturnType<typeof openEvents>
export type RetriedJob = Pick<JobRow, 'number' | 'organizationId' | 'attempt' | 'execution' | 'node' | 'item'>

/**
 * Deletes up to `limit` events older than `before`, oldest first and only up to the first younger one, so that the
 * remaining sequence has no gaps even if the clock jumped. Returns how many.
 */
export const forgetEvents = (connection: Connection) => {
  const oldest = connection.query<{ sequence: number; at: number }>`SELECT sequence, at FROM events ORDER BY sequence
    LIMIT ?`
  const forget = connection.statement`DELETE FROM events WHERE sequence <= ?`
  return (before: number, limit: number): number => {
    let last = 0
    for (const { sequence, at } of oldest.iterate(limit)) {
      if (at >= before) break
      last = sequence
    }
    return last === 0 ? 0 : forget.run(last).changes
  }
}

/** The item of an event: that of its job, or the one that an event without a job names. */
const item = `CASE WHEN events.number IS NOT NULL THEN jobs.item
  WHEN type = 'workflow_execution.node.reminder' THEN data ->> 'item' END AS item`

/** Reads of events; short statements on a read-only connection. */
export function eventReads(connection: Connection) {
  const columns = 'sequence, type, jobs.id AS jobId, events.attempt, at, data FROM events JOIN jobs USING (number)'
  const ofExecution = connection.query<ExecutionEvent>`
    SELECT sequence, type, e.id AS executionId, n.node_id AS nodeId, ${item}, jobs.id AS jobId, events.attempt, events.at,
    data FROM executions AS e JOIN events ON events.execution = e.number
    LEFT JOIN execution_nodes AS n ON n.execution = e.number AND n.node = events.node
    LEFT JOIN jobs ON jobs.number = events.number
    WHERE e.organization_id = ? AND e.id = ? AND sequence > ? ORDER BY sequence LIMIT ?`
  const everything = connection.query<OrganizationEvent>`
    SELECT sequence, type, e.id AS executionId, n.node_id AS nodeId, ${item}, jobs.id AS jobId, events.attempt, events.at,
    data FROM events LEFT JOIN jobs ON jobs.number = events.number LEFT JOIN executions AS e ON e.number = events.execution
    LEFT JOIN execution_nodes AS n ON n.execution = events.execution AND n.node = events.node
    WHERE events.organization_id = ? AND sequence > ? ORDER BY sequence LIMIT ?`
  const ofOrganization = connection.query<JobEvent>`SELECT ${columns} WHERE events.organization_id = ? AND sequence > ?
    ORDER BY sequence LIMIT ?`
  const ofJob = connection.query<JobEvent>`SELECT ${columns} WHERE number =
    (SELECT number FROM jobs WHERE organization_id = ? AND id = ?) AND sequence > ? ORDER BY sequence LIMIT ?`
  // The last number used and not the highest in the table: it does not go back when events are deleted.
  const last = connection.scalar<number>`SELECT sequence FROM last_event`
  return {
    'events.after': (organizationId, query) =>
      query.jobId === undefined
        ? ofOrganization.all(organizationId, query.sequence, query.limit)
        : ofJob.all(organizationId, query.jobId, query.sequence, query.limit),
    'events.ofOrganization': (organizationId, query) => everything.all(organizationId, query.sequence, query.limit),
    'events.ofExecution': (organizationId, query) =>
      ofExecution.all(organizationId, query.executionId, query.sequence, query.limit),
    'events.last': () => last.get() ?? 0,
  } satisfies Statements
}
