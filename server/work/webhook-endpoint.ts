import { z } from 'zod'
import { Failure } from '../../core/failure.ts'
import { isId } from '../../core/ids.ts'
import { definedMembers } from '../../core/members.ts'
import { boolean, integer, namedObject, nullableInteger, nullableString, string } from '../../core/schemas/fields.ts'
import type { WebhookEndpoint } from '../../core/store/store.ts'
import { maxSecretOverlapMs, maxUrlLength, requireEventTypes } from '../../core/webhooks/endpoints.ts'
import { type WebhookView, webhookView } from '../../core/webhooks/webhook-view.ts'
import { actorOf } from '../http/access/reach.ts'
import type { ClientExchange } from '../http/request/exchange.ts'
import type { Unrepeatable } from '../http/request/idempotency.ts'
import type { Owners } from '../http/request/owners.ts'

export type WebhookOwners = Owners<'idempotency' | 'webhooks'>

/** Heading of the reference. */
export const webhookTag = 'Webhooks'

export const endpointFields = {
  name: z.string().min(1).max(128).describe('Name of the endpoint.'),
  url: z
    .string()
    .max(maxUrlLength)
    .describe('Where events are sent: http or https, at a public address, on port 80 or 443.'),
  event_types: z
    .array(z.string().max(64))
    .min(1)
    .max(64)
    .describe(
      'Types of events to send, as in `GET /std/v1/webhook_event_types`; `job.*` stands for all that begin so.',
    ),
}

export const overlapField = z
  .int()
  .min(0)
  .max(maxSecretOverlapMs / 1000)
  .default(86_400)
  .describe('Seconds for which the previous secret signs beside the new one, 604800 at most.')

/** The failure for an unknown endpoint. */
const missing = (id: string) => new Failure('not_found', `Webhook endpoint ${id.slice(0, 64)} was not found.`)

export const isEndpointId = (id: string): boolean => isId(id, 'whe_')

/** Finds an endpoint of the caller's organization. Throws Failure `not_found`. */
export async function findEndpoint(
  id: string,
  { caller }: Pick<ClientExchange, 'caller'>,
  { webhooks }: Owners<'webhooks'>,
): Promise<WebhookEndpoint> {
  const found = isEndpointId(id) ? await webhooks.find(caller.organizationId, id) : undefined
  if (found) return found
  throw missing(id)
}

export const shownEndpoint = (endpoint: WebhookEndpoint, { webhooks }: Owners<'webhooks'>): WebhookView =>
  webhookView(endpoint, webhooks.hintOf(endpoint))

/** Changes an endpoint. Throws Failure `not_found`, and `invalid_value` for a URL or type that is not allowed. */
export async function changeEndpoint(
  id: string,
  body: { name?: string | undefined; url?: string | undefined; event_types?: string[] | undefined; enabled?: boolean },
  exchange: ClientExchange,
  { webhooks }: Owners<'webhooks'>,
): Promise<WebhookView> {
  const { name, url, event_types, enabled } = body
  const changed = await webhooks.update(
    exchange.caller.organizationId,
    isEndpointId(id) ? id : '',
    definedMembers({
      name,
      url,
      eventTypes: event_types,
      enabled,
    }),
    actorOf(exchange),
  )
  if (!changed) throw missing(id)
  return shownEndpoint(changed, { webhooks })
}

/** Makes a new signing secret. Throws Failure `not_found`. */
export async function rotateEndpoint(
  id: string,
  overlapSeconds: number,
  exchange: ClientExchange,
  { webhooks }: Owners<'webhooks'>,
): Promise<{ webhook: WebhookView; signing_secret: string }> {
  const known = isEndpointId(id) ? id : ''
  const rotated = await webhooks.rotate(exchange.caller.organizationId, known, overlapSeconds * 1000, actorOf(exchange))
  if (!rotated) throw missing(id)
  return { webhook: shownEndpoint(rotated.endpoint, { webhooks }), signing_secret: rotated.secret }
}

/** Deletes an endpoint with its deliveries. Throws Failure `not_found`. */
export async function removeEndpoint(
  id: string,
  exchange: ClientExchange,
  { webhooks }: Owners<'webhooks'>,
): Promise<void> {
  const removed = await webhooks.remove(exchange.caller.organizationId, isEndpointId(id) ? id : '', actorOf(exchange))
  if (!removed) throw missing(id)
}

/** The answer to a repeated request with the same key: the secret is not stored, so it names the endpoint. */
export const secretShownOnce = ({ id }: { id: string }): Unrepeatable => ({
  message: `This 'Idempotency-Key' has created a secret of the webhook endpoint ${id}. It was shown once and is not stored. If it was lost, rotate the secret of that endpoint with a new key.`,
  facts: { webhook_id: id },
})

/** Error codes of requests with an `Idempotency-Key`. */
export const keyedCodes = ['conflict', 'idempotency_key_in_use', 'idempotency_key_reused'] as const

export const Tested = namedObject('WebhookTested', 'What came of a test message.', {
  object: z.literal('webhook_endpoint.test'),
  webhook_endpoint_id: string('Id of the endpoint.'),
  event_type: string('Type of the event that was sent.'),
  success: boolean('Whether the URL answered with a status of 2xx.'),
  status_code: nullableInteger('Status of the answer; null if there was none.'),
  duration_ms: integer('Milliseconds until the end of the answer.'),
  error: nullableString('Why it failed; null if it did not.'),
})

/** Sends a test message. Throws Failure `not_found` and `invalid_value`. */
export async function testEndpoint(
  id: string,
  type: string,
  exchange: ClientExchange,
  owners: WebhookOwners,
): Promise<z.input<typeof Tested>> {
  requireEventTypes([type], 'event_type')
  const endpoint = await findEndpoint(id, exchange, owners)
  if (!(await owners.webhooks.recordTest(endpoint, type, actorOf(exchange)))) throw missing(id)
  const { success, statusCode, durationMs, error } = await owners.webhooks.test(endpoint, type, exchange.signal)
  return {
    object: 'webhook_endpoint.test',
    webhook_endpoint_id: id,
    event_type: type,
    success,
    status_code: statusCode,
    duration_ms: durationMs,
    error,
  }
}
