import type { Failure } from '../../core/failure.ts'
import type { DeliveryStatus } from '../../core/store/store.ts'
import type { DeliveryView, WebhookSecretView, WebhookView } from '../../core/webhooks/webhook-view.ts'
import { refused } from '../terminal/exit-codes.ts'

/** Id or name of the organization; undefined for the only one or the default. */
export type OrganizationOption = string | undefined

export interface WebhookWithSecret {
  webhook: WebhookView
  signing_secret: string
}

export interface WebhookChange {
  name?: string | undefined
  url?: string | undefined
  event_types?: string[] | undefined
  enabled?: boolean | undefined
}

/** What came of a test message. */
export interface Tested {
  success: boolean
  status_code: number | null
  duration_ms: number
  error: string | null
}

/** Manages webhooks in the store of this machine, or over HTTP on another server. Throws Failure `not_found`. */
export interface WebhookClient {
  create(
    organization: OrganizationOption,
    options: { name: string; url: string; event_types: string[]; enabled: boolean },
  ): Promise<WebhookWithSecret>
  /** Returns all endpoints, newest first. */
  list(organization: OrganizationOption): Promise<WebhookView[]>
  update(organization: OrganizationOption, id: string, change: WebhookChange): Promise<WebhookView>
  remove(organization: OrganizationOption, id: string): Promise<void>
  rotate(organization: OrganizationOption, id: string, overlapMs: number): Promise<WebhookWithSecret>
  test(organization: OrganizationOption, id: string, type: string): Promise<Tested>
  /** Newest first; of one endpoint or of the organization. */
  deliveries(
    organization: OrganizationOption,
    filter: { endpointId: string | undefined; status: DeliveryStatus | undefined; limit: number },
  ): Promise<DeliveryView[]>
  redeliver(organization: OrganizationOption, id: string): Promise<DeliveryView>
  /** The secret that signs the webhooks of requests. */
  secret(organization: OrganizationOption): Promise<WebhookSecretView>
  rotateSecret(organization: OrganizationOption, overlapMs: number): Promise<WebhookSecretView>
  close(): Promise<void>
}

export const noEndpoint = (id: string): Failure =>
  refused('not_found', `There is no webhook endpoint '${id}' here. See: infer webhook list`)
export const noDelivery = (id: string): Failure =>
  refused('not_found', `There is no delivery '${id}' here. See: infer webhook deliveries`)
