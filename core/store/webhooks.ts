import type { Actor } from './audit-records.ts'

/** `standard`: the body and signature of Standard Webhooks. `fal`: those of fal. */
type WebhookForm = 'standard' | 'fal'

/** The webhook of one request: where the events of its job or execution are sent. */
export interface RequestWebhook {
  url: string
  /** Types or patterns such as `job.*`. */
  eventTypes: string[]
  form: WebhookForm
  /** What this server's own URLs in its messages begin with. */
  origin: string
}

export interface NewWebhookEndpoint {
  id: string
  organizationId: string
  name: string
  url: string
  /** Types or patterns such as `job.*`. */
  eventTypes: string[]
  enabled: boolean
  /** What this server's own URLs in its messages begin with; null takes the server's address. */
  origin: string | null
  createdAt: number
}

/** Which signing secrets are valid. The secrets are derived from the master key and are not stored. */
export interface SecretState {
  /** Number of the current secret, from 1. */
  version: number
  /** Until when the previous secret signs too, epoch milliseconds; null if it does not. */
  previousUntil: number | null
}

/** A URL to which events of an organization are sent. */
export interface WebhookEndpoint extends NewWebhookEndpoint {
  /** `gone`: the URL has answered 410, which disabled the endpoint. */
  disabledReason: 'gone' | null
  secret: SecretState
  updatedAt: number
}

export type WebhookEndpointChange = Partial<Pick<NewWebhookEndpoint, 'name' | 'url' | 'eventTypes' | 'enabled'>>

/** A message to one URL about one event, whose body was not made yet. */
export interface NewDelivery {
  number: number
  id: string
  organizationId: string
  /** Null: the webhook of a request. */
  endpointId: string | null
  form: WebhookForm
  origin: string | null
  /** Sequence number of the event. */
  event: number
  type: string
  /** When the event happened, epoch milliseconds. */
  at: number
  subject: DeliverySubject
}

/** What the event of a delivery is about. */
export interface DeliverySubject {
  jobId: string | null
  executionId: string | null
  nodeId: string | null
  /** The item of the node that it is about; absent for the node itself. */
  item?: number
  /** Of the job, after the event. */
  attempt: number
  /** Of an event of the organization itself. */
  data?: unknown
}

/** A delivery that may be sent now. */
export interface DueDelivery
  extends Pick<NewDelivery, 'number' | 'id' | 'organizationId' | 'endpointId' | 'form' | 'type'> {
  url: string
  /** Of the job or execution that it is about, or a word for other events. */
  object: string
  /** Attempts so far. */
  attempts: number
  body: string
  secret: SecretState
  /** The trace of the job, execution or batch that it is about, for its header; null without one. */
  traceparent: string | null
}

/** Deliveries with the same target share a limit of concurrent requests. */
export interface DeliveryTarget {
  target: string
  /** When its first delivery is due, epoch milliseconds. */
  nextAt: number
  /** `held`: its endpoint or organization is disabled. `removed`: its endpoint no longer exists. */
  state: 'open' | 'held' | 'removed'
}

/** The outcome of one attempt to deliver. */
export interface DeliveryAttempt {
  number: number
  outcome: 'delivered' | 'retry' | 'dead'
  /** When it was made, epoch milliseconds. */
  at: number
  /** When to try again, epoch milliseconds; for `retry`. */
  nextAt: number | null
  /** Null if there was no answer. */
  statusCode: number | null
  durationMs: number
  /** Why it failed, as a sentence; null for `delivered`. */
  error: string | null
  /** The beginning of the answer's body. */
  responseBody: string | null
  /** Whether the endpoint is to be disabled, because its URL is gone. */
  gone: boolean
}

export type DeliveryStatus = 'pending' | 'delivered' | 'dead'

export interface DeliveryRecord {
  id: string
  organizationId: string
  endpointId: string | null
  url: string
  event: number
  type: string
  status: DeliveryStatus
  attempts: number
  /** When it is sent next, epoch milliseconds; null unless it is pending. */
  nextAt: number | null
  createdAt: number
  attemptedAt: number | null
  finishedAt: number | null
  statusCode: number | null
  durationMs: number | null
  error: string | null
  /** Null until it was made. */
  requestBody: string | null
  responseBody: string | null
}

/** Changes that someone requested name him in the audit log, in the same transaction: `by`; absent for the server. */
export interface WebhookStore {
  /** `conflict` if the organization has `maxEndpoints` already. */
  create(endpoint: NewWebhookEndpoint, by?: Actor): Promise<WebhookEndpoint>
  find(organizationId: string, id: string): Promise<WebhookEndpoint | undefined>
  /** Newest first; `after` is the id of the last endpoint of the page before. */
  list(organizationId: string, page: { limit: number; after?: string | undefined }): Promise<WebhookEndpoint[]>
  /** Undefined: the organization has no such endpoint. */
  update(
    organizationId: string,
    id: string,
    change: WebhookEndpointChange,
    at: number,
    by?: Actor,
  ): Promise<WebhookEndpoint | undefined>
  /** Makes a new current secret. Undefined: the organization has no such endpoint. */
  rotate(
    organizationId: string,
    id: string,
    previousUntil: number | null,
    at: number,
    by?: Actor,
  ): Promise<WebhookEndpoint | undefined>
  /** Its deliveries are removed later. Undefined: the organization has no such endpoint. */
  remove(organizationId: string, id: string, at: number, by?: Actor): Promise<true | undefined>
  /** The secrets that sign the webhooks of requests. */
  secretOf(organizationId: string): Promise<SecretState>
  rotateSecret(organizationId: string, previousUntil: number | null, at: number, by?: Actor): Promise<SecretState>
  /** Records in the audit log that a test message is sent. False: the organization has no such endpoint. */
  recordTest(organizationId: string, id: string, type: string, at: number, by?: Actor): Promise<boolean>

  /** Deliveries without a body, in the order of their events. */
  withoutBody(limit: number): Promise<NewDelivery[]>
  /** Stores bodies: from then on the deliveries may be sent. */
  keepBodies(bodies: readonly { number: number; body: string }[]): Promise<void>
  /** Targets with deliveries that wait for their time only, in the order of their names, after `after`. */
  targets(after: string, limit: number): Promise<DeliveryTarget[]>
  /**
   * Deliveries to the target that are due, the earliest first. Of the deliveries of one object only the first that has
   * not ended is among them.
   */
  due(target: string, now: number, limit: number): Promise<DueDelivery[]>
  /** Records an attempt. False: the delivery has ended or no longer exists. */
  settle(attempt: DeliveryAttempt): Promise<boolean>
  /** Newest first; `after` is the id of the last delivery of the page before. */
  deliveries(
    organizationId: string,
    filter: {
      limit: number
      after?: string | undefined
      endpointId?: string | undefined
      status?: DeliveryStatus | undefined
    },
  ): Promise<DeliveryRecord[]>
  delivery(organizationId: string, id: string): Promise<DeliveryRecord | undefined>
  /** Makes a delivery due again, with all its attempts. Undefined: the organization has no such delivery. */
  redeliver(organizationId: string, id: string, at: number, by?: Actor): Promise<DeliveryRecord | undefined>
  /**
   * Removes deliveries that ended before `before` and those of removed endpoints; ends those from before `before` that
   * are overdue for a day, because their endpoint is disabled. At most `limit` of each; returns how many.
   */
  sweep(before: number, at: number, limit: number): Promise<number>
  /** Deliveries by status, counted up to `limit`. */
  counts(limit: number): Promise<{ pending: number; dead: number }>
}

/** How many endpoints an organization may have. */
export const maxEndpoints = 32
