import { newId } from '../../ids.ts'
import { coversType, publicTypesOf } from '../event-types.ts'
import type { DeliverySubject, RequestWebhook } from '../webhooks.ts'
import type { GroupEffects } from './commit-effects.ts'
import type { Connection } from './database.ts'

/** An event as it was recorded. `number` is that of its job. */
export interface StoredEvent {
  sequence: number
  organizationId: string
  type: string
  at: number
  attempt: number
  number: number | null
  execution: number | null
  node: number | null
  /** The item that an event without a job is about. */
  item?: number
  /** Of an event of the organization itself. */
  data?: unknown
}

interface Receiver {
  target: string
  endpointId: string | null
  url: string | null
  form: RequestWebhook['form']
  origin: string | null
  eventTypes: readonly string[]
}

/** Deliveries of one URL and object are sent in order; a URL's host is what bounds its concurrent requests. */
const deliveryTargetOf = (organizationId: string, url: string): string => `${organizationId} ${new URL(url).origin}`

/**
 * Inserts the deliveries of an event, in the transaction of the event: no crash can lose one or make it twice. Events of
 * organizations without endpoints cost a look-up in memory, unless a kept job or execution has a webhook of its own.
 */
export function openWebhookOutbox(connection: Connection, effects: Pick<GroupEffects, 'add'>) {
  const enabled = connection.query<{ organization_id: string; id: string; event_types: string; origin: string | null }>`
    SELECT organization_id, id, event_types, origin FROM webhook_endpoints WHERE enabled = 1 ORDER BY id`
  // Both are answered by partial indexes.
  const anyOwn = connection.scalar<number>`SELECT EXISTS (SELECT 1 FROM jobs WHERE webhook IS NOT NULL) OR EXISTS
    (SELECT 1 FROM executions WHERE webhook IS NOT NULL)`
  const job = connection.query<{ id: string; webhook: string | null; batch: number | null; item: number | null }>`
    SELECT id, webhook, batch, item FROM jobs WHERE number = ?`
  const execution = connection.query<{ id: string; webhook: string | null }>`SELECT id, webhook FROM executions
    WHERE number = ?`
  const nodeId = connection.scalar<string>`SELECT node_id FROM execution_nodes WHERE execution = ? AND node = ?`
  const version = connection.scalar<number>`PRAGMA data_version`
  const insert = connection.statement`
    INSERT INTO webhook_deliveries (organization_id, id, target, endpoint_id, url, form, origin, event, type, object,
    subject, at, status, waits, attempts, next_at)
    VALUES (:organizationId, :id, :target, :endpointId, :url, :form, :origin, :event, :type, :object, :subject, :at, 'new',
    EXISTS (SELECT 1 FROM webhook_deliveries WHERE target = :target AND object = :object AND finished_at IS NULL),
    0, :at)`
  let endpoints: Map<string, Receiver[]> | undefined
  /** Changes when another process (a command of the operator) has committed. */
  let readAt: number | undefined
  /** Whether endpoints have changed since the last rollback. */
  let changed = false
  /** Whether any kept job or execution has a webhook; asked once in a transaction. */
  let hasOwn: boolean | undefined

  function endpointsOf(organizationId: string): readonly Receiver[] {
    if (hasOwn === undefined) {
      hasOwn = anyOwn.get() === 1
      const now = version.get()!
      if (now !== readAt) endpoints = undefined
      readAt = now
    }
    if (!endpoints) {
      endpoints = new Map()
      for (const { organization_id, id, event_types, origin } of enabled.all()) {
        const eventTypes = JSON.parse(event_types) as string[]
        const receiver: Receiver = { target: id, endpointId: id, url: null, form: 'standard', origin, eventTypes }
        endpoints.set(organization_id, [...(endpoints.get(organization_id) ?? []), receiver])
      }
    }
    return endpoints.get(organizationId) ?? []
  }

  function ownOf(organizationId: string, webhook: string | null | undefined): Receiver[] {
    if (webhook == null) return []
    const { url, eventTypes, form, origin } = JSON.parse(webhook) as RequestWebhook
    return [{ target: deliveryTargetOf(organizationId, url), endpointId: null, url, form, origin, eventTypes }]
  }

  function deliver(event: StoredEvent, type: string, object: string, subject: DeliverySubject, to: Receiver[]): void {
    const { organizationId, sequence, at } = event
    for (const { eventTypes, ...receiver } of to) {
      if (!eventTypes.some(pattern => coversType(pattern, type))) continue
      const text = JSON.stringify(subject)
      insert.run({ ...receiver, organizationId, id: newId('msg'), event: sequence, type, object, subject: text, at })
      effects.add('deliveries', receiver.target)
    }
  }

  return {
    /** Call it for every event that was recorded. */
    add(event: StoredEvent): void {
      const { organizationId, type, number, attempt, data } = event
      const registered = endpointsOf(organizationId)
      if (registered.length === 0 && !hasOwn) return
      const ofJob = number === null ? undefined : job.get(number)
      // 150,000 messages for a file of 50,000 lines would delay all others. The batch sends its end, a node that of its items.
      // An item that begins to wait for people is told of, so its event has a node.
      if (ofJob && (ofJob.batch !== null || (ofJob.item !== null && event.node === null))) return
      const item = ofJob?.item ?? event.item
      const ofExecution = event.execution === null ? undefined : execution.get(event.execution)
      const named =
        event.execution === null || event.node === null ? undefined : nodeId.get(event.execution, event.node)
      const subject: DeliverySubject = {
        jobId: ofJob?.id ?? null,
        executionId: ofExecution?.id ?? null,
        nodeId: named ?? null,
        attempt,
        ...(item === undefined || item === null ? {} : { item }),
        ...(data === undefined ? {} : { data }),
      }
      for (const name of publicTypesOf(type, event.node !== null)) {
        const isJob = name.startsWith('job.')
        const about = isJob ? ofJob : name.startsWith('workflow_execution.') ? ofExecution : undefined
        const own = ownOf(organizationId, about?.webhook)
        // Events of the organization itself are in order among those of their kind.
        deliver(event, name, about?.id ?? name.split('.')[0]!, subject, [...registered, ...own])
      }
    },

    /** Call it after a change of endpoints in this transaction. */
    endpointsChanged(): void {
      endpoints = undefined
      changed = true
    },
    /** Call it after a job or execution with a webhook was inserted in this transaction. */
    ownAdded(): void {
      hasOwn = true
    },
    /** Call it when the transaction, or a part of it, was rolled back. */
    forget(): void {
      if (changed) endpoints = undefined
      changed = false
      hasOwn = undefined
    },
    write(): void {
      hasOwn = undefined
    },
  }
}
export type WebhookOutbox = ReturnType<typeof openWebhookOutbox>
