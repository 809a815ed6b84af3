import {
  type JobEventType,
  type JobRecord,
  jobEventTypes,
  type OrganizationEvent,
  type OrganizationEventType,
  organizationEventTypes,
} from '../../../core/store/store.ts'
import { pageSize } from '../../http/answer/follow.ts'
import { type SseRecord, sseText } from '../../http/answer/sse.ts'
import type { ClientExchange } from '../../http/request/exchange.ts'
import type { Owners } from '../../http/request/owners.ts'
import { streamPieceBytes } from '../../http/streams/streams.ts'
import { eventName, recordOf } from '../../views/execution-event.ts'
import { eventId, eventRecord, record, typesWanted } from '../../views/job-event.ts'

type EventOwners = Owners<'executions' | 'files' | 'jobs'>

/** Consecutive events of an organization, as a stream sends them. */
export interface EventPage {
  /** The sequence of the last event in it. */
  sequence: number
  /** Server-sent events in UTF-8; empty if none is of a wanted type. Shared by streams, so never modified. */
  bytes: Buffer
}

/** Milliseconds that a page is kept for other readers. */
const keptMs = 1_000
/** Bytes of all kept pages. */
const maxKeptBytes = 4 << 20

const isJobEvent = (type: string): type is JobEventType => (jobEventTypes as readonly string[]).includes(type)
const isOrganizationEvent = (type: string): type is OrganizationEventType =>
  (organizationEventTypes as readonly string[]).includes(type)

/** Returns the record of an event of a job; undefined if the event is not of a job or not of a wanted type. */
async function jobRecordOf(
  { jobId, type, ...event }: OrganizationEvent,
  wanted: (type: string) => boolean,
  exchange: ClientExchange,
  owners: EventOwners,
): Promise<SseRecord | undefined> {
  if (jobId === null || !isJobEvent(type) || !wanted(type)) return undefined
  const job: JobRecord | undefined = await owners.jobs.find(exchange.caller.organizationId, jobId)
  return job && eventRecord({ ...event, type, jobId }, job, exchange, owners)
}

/** Returns the record of an event of an execution; undefined as for jobs. */
async function executionRecordOf(
  { executionId, type, ...event }: OrganizationEvent,
  wanted: (type: string) => boolean,
  exchange: ClientExchange,
  owners: EventOwners,
): Promise<SseRecord | undefined> {
  if (executionId === null || isOrganizationEvent(type)) return undefined
  const name = eventName({ ...event, type })
  if (name === undefined || !wanted(name)) return undefined
  return recordOf({ ...event, type, executionId }, undefined, exchange, owners)
}

/** Returns the record of an event of the organization itself; undefined as for jobs. */
const organizationRecordOf = ({ type, at, sequence, data }: OrganizationEvent, wanted: (type: string) => boolean) =>
  data === null || !isOrganizationEvent(type) || !wanted(type) ? undefined : record(type, at, eventId(sequence), data)

async function textOf(
  event: OrganizationEvent,
  wanted: (type: string) => boolean,
  exchange: ClientExchange,
  owners: EventOwners,
): Promise<string> {
  const records = [
    await jobRecordOf(event, wanted, exchange, owners),
    await executionRecordOf(event, wanted, exchange, owners),
    organizationRecordOf(event, wanted),
  ].filter(one => one !== undefined)
  // Of two records for one event only the second has the id: a reader that resumes after it has received both.
  return records
    .map(({ id, ...one }, at) => sseText(at < records.length - 1 || id === undefined ? one : { ...one, id }))
    .join('')
}

/**
 * Reads the event log of organizations in pages. Readers at the same position share a page: it is read and rendered
 * once, and its bytes are in memory once, for any number of streams.
 */
export function openEventPages(owners: EventOwners) {
  const { executions, jobs } = owners
  const kept = new Map<string, Promise<EventPage | undefined>>()
  let keptBytes = 0

  async function make(exchange: ClientExchange, after: number, types: string | undefined) {
    const { organizationId } = exchange.caller
    const events = await executions.events.ofOrganization(organizationId, { sequence: after, limit: pageSize })
    const wanted = typesWanted(types)
    let text = ''
    let sequence = after
    for (const event of events) {
      text += await textOf(event, wanted, exchange, owners)
      ;({ sequence } = event)
      // A slow reader keeps at most one page in memory.
      if (text.length >= streamPieceBytes) break
    }
    return sequence === after ? undefined : { sequence, bytes: Buffer.from(text) }
  }

  function forget(key: string, bytes: number) {
    if (kept.delete(key)) keptBytes -= bytes
  }

  return {
    /** Returns the next events after `after`; undefined if there are none yet. `types` is the query parameter. */
    async next(exchange: ClientExchange, after: number, types: string | undefined): Promise<EventPage | undefined> {
      // Cheaper than reading the events of the organization, and never answered from a kept page.
      if ((await jobs.events.last()) <= after) return undefined
      const key = JSON.stringify([exchange.caller.organizationId, after, types, exchange.origin])
      // A shared read that has found none may have begun before the event that woke this reader.
      for (let known = kept.get(key); known; known = kept.get(key)) {
        const page = await known
        if (page) return page
      }
      const made = make(exchange, after, types)
      kept.set(key, made)
      const page = await made.catch((thrown: unknown) => {
        forget(key, 0)
        throw thrown
      })
      // `undefined` is not kept, because an event may be added at any time.
      if (!page || keptBytes + page.bytes.length > maxKeptBytes) forget(key, 0)
      else {
        keptBytes += page.bytes.length
        setTimeout(() => forget(key, page.bytes.length), keptMs).unref()
      }
      return page
    },
  }
}
export type EventPages = ReturnType<typeof openEventPages>
