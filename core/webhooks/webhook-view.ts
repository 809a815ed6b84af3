import { z } from 'zod'
import { seconds } from '../store/audit-fields.ts'
import type { DeliveryRecord, SecretState, WebhookEndpoint } from '../store/store.ts'

/** A webhook endpoint in the API. */
export const WebhookView = z
  .object({
    id: z.string().describe('Id of the endpoint: `whe_…`.'),
    object: z.literal('webhook_endpoint'),
    name: z.string().describe('Name of the endpoint.'),
    url: z.string().describe('Where events are sent.'),
    event_types: z.array(z.string()).describe('Types of events that are sent, or patterns such as `job.*`.'),
    enabled: z.boolean().describe('Whether events are sent. While it is false, pending deliveries wait.'),
    disabled_reason: z
      .literal('gone')
      .nullable()
      .describe('`gone`: the URL answered 410, which disabled the endpoint; null otherwise.'),
    signing_secret_hint: z.string().describe('The last characters of the signing secret.'),
    previous_secret_until: z
      .int()
      .nullable()
      .describe('Unix seconds until which the previous secret signs too; null if it does not.'),
    created_at: z.int().describe('Unix seconds.'),
    updated_at: z.int().describe('Unix seconds of the last change.'),
  })
  .meta({ id: 'WebhookEndpoint', description: 'A URL to which events of the organization are sent.' })
export type WebhookView = z.output<typeof WebhookView>

/** When the previous secret ends, epoch milliseconds; null if it has ended. */
const validUntil = ({ previousUntil }: SecretState, now: number): number | null =>
  previousUntil !== null && previousUntil > now ? previousUntil : null

export const webhookView = (endpoint: WebhookEndpoint, hint: string, now = Date.now()): WebhookView => ({
  id: endpoint.id,
  object: 'webhook_endpoint',
  name: endpoint.name,
  url: endpoint.url,
  event_types: endpoint.eventTypes,
  enabled: endpoint.enabled,
  disabled_reason: endpoint.disabledReason,
  signing_secret_hint: hint,
  previous_secret_until: seconds(validUntil(endpoint.secret, now)),
  created_at: seconds(endpoint.createdAt)!,
  updated_at: seconds(endpoint.updatedAt)!,
})

/** A delivery in the API. */
export const DeliveryView = z
  .object({
    id: z.string().describe('Id of the message, the same in all attempts: `msg_…`. It is the header `webhook-id`.'),
    object: z.literal('webhook_delivery'),
    webhook_id: z.string().nullable().describe('Id of the endpoint; null for the webhook of a request.'),
    url: z.string().describe('Where it is sent.'),
    event_id: z.string().describe('Id of the event: `evt_…`.'),
    type: z.string().describe('Type of the event.'),
    status: z
      .enum(['pending', 'delivered', 'dead'])
      .describe('`dead`: all attempts have failed, and it is sent again only on request.'),
    attempt: z.int().describe('Attempts so far.'),
    next_attempt_at: z.int().nullable().describe('Unix seconds; null unless it is pending.'),
    status_code: z.int().nullable().describe('Status of the last answer; null if there was none.'),
    duration_ms: z.int().nullable().describe('Milliseconds of the last attempt; null before.'),
    error: z.string().nullable().describe('Why the last attempt failed; null if it did not.'),
    request_body: z.string().nullable().describe('The message; null until it was made.'),
    response_body: z.string().nullable().describe('The first 4 KiB of the last answer; null without one.'),
    created_at: z.int().describe('Unix seconds of the event.'),
    attempted_at: z.int().nullable().describe('Unix seconds of the last attempt; null before.'),
    finished_at: z.int().nullable().describe('Unix seconds; null while it is pending.'),
  })
  .meta({ id: 'WebhookDelivery', description: 'A message to a webhook.' })
export type DeliveryView = z.output<typeof DeliveryView>

export const deliveryView = (delivery: DeliveryRecord): DeliveryView => ({
  id: delivery.id,
  object: 'webhook_delivery',
  webhook_id: delivery.endpointId,
  url: delivery.url,
  event_id: `evt_${delivery.event}`,
  type: delivery.type,
  status: delivery.status,
  attempt: delivery.attempts,
  next_attempt_at: seconds(delivery.nextAt),
  status_code: delivery.statusCode,
  duration_ms: delivery.durationMs,
  error: delivery.error,
  request_body: delivery.requestBody,
  response_body: delivery.responseBody,
  created_at: seconds(delivery.createdAt)!,
  attempted_at: seconds(delivery.attemptedAt),
  finished_at: seconds(delivery.finishedAt),
})

/** The signing secret of an organization, which signs the webhooks of its requests, in the API. */
export const WebhookSecretView = z
  .object({
    object: z.literal('webhook_secret'),
    signing_secret: z.string().describe('The secret, `whsec_…`.'),
    previous_secret_until: z
      .int()
      .nullable()
      .describe('Unix seconds until which the previous secret signs too; null if it does not.'),
  })
  .meta({ id: 'WebhookSecret', description: 'The secret that signs the webhooks of requests.' })
export type WebhookSecretView = z.output<typeof WebhookSecretView>

export const webhookSecretView = (
  { secret, state }: { secret: string; state: SecretState },
  now = Date.now(),
): WebhookSecretView => ({
  object: 'webhook_secret',
  signing_secret: secret,
  previous_secret_until: seconds(validUntil(state, now)),
})
