import { z } from 'zod'
import { isId } from '../../core/ids.ts'
import { definedMembers } from '../../core/members.ts'
import { boolean, integer, namedObject, nullableInteger, nullableString, string } from '../../core/schemas/fields.ts'
import type { WebhookEndpoint } from '../../core/store/store.ts'
import { maxSecretOverlapMs, maxUrlLength, requireEventTypes } from '../../core/webhooks/endpoints.ts'
import { type WebhookView, webhookView } from '../../core/webhooks/webhook-view.ts'
import { actorOf } from '../http/access/reach.ts'
import { deletedAnswer } from '../http/answer/page.ts'
import { found } from '../http/request/errors.ts'
import type { ClientExchange } from '../http/request/exchange.ts'
import { once } from '../http/request/idempotency.ts'
import type { Owners } from '../http/request/owners.ts'

export type WebhookOwners = Owners<'idempotency' | 'webhooks'>

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

export const isEndpointId = (id: string): boolean => isId(id, 'whe_')

/** Returns what was found of an endpoint. Throws Failure `not_found` if nothing was. */
const ofEndpoint = <Found>(value: Found, id: string) => found(value, 'Webhook endpoint', id)

/** The id of an endpoint in the path of a request; empty, which no endpoint has, if it has another form. */
const known = (id: string) => (isEndpointId(id) ? id : '')

/** Finds an endpoint of the caller's organization. Throws Failure `not_found`. */
export const findEndpoint = async (id: string, { caller }: ClientExchange, { webhooks }: Owners<'webhooks'>) =>
  ofEndpoint(isEndpointId(id) ? await webhooks.find(caller.organizationId, id) : undefined, id)

export const shownEndpoint = (endpoint: WebhookEndpoint, { webhooks }: Owners<'webhooks'>): WebhookView =>
  webhookView(endpoint, webhooks.hintOf(endpoint))

/** Returns one entry more than `limit` of the list of endpoints, newest first. */
export async function listEndpoints(
  { limit, after }: { limit: number; after?: string | undefined },
  { caller }: ClientExchange,
  { webhooks }: Owners<'webhooks'>,
): Promise<WebhookView[]> {
  const endpoints = await webhooks.list(caller.organizationId, { limit: limit + 1, after })
  return endpoints.map(endpoint => shownEndpoint(endpoint, { webhooks }))
}

type EndpointFields = z.output<z.ZodObject<typeof endpointFields>> & { enabled?: boolean }

/** Creates an endpoint, once for the idempotency key of the request, and returns it with its secret. */
export const createEndpoint = (input: { body: EndpointFields }, exchange: ClientExchange, owners: WebhookOwners) =>
  onceWithSecret(exchange, input, owners, () => {
    const { event_types: eventTypes, enabled = true, ...fields } = input.body
    const { origin, caller } = exchange
    const options = { ...fields, organizationId: caller.organizationId, eventTypes, enabled, origin }
    return owners.webhooks.create(options, actorOf(exchange))
  })

/** Changes an endpoint. Throws Failure `not_found`, and `invalid_value` for a URL or type that is not allowed. */
export async function changeEndpoint(
  id: string,
  { event_types: eventTypes, ...fields }: Partial<EndpointFields>,
  exchange: ClientExchange,
  { webhooks }: Owners<'webhooks'>,
): Promise<WebhookView> {
  const change = definedMembers({ ...fields, eventTypes })
  const changed = await webhooks.update(exchange.caller.organizationId, known(id), change, actorOf(exchange))
  return shownEndpoint(ofEndpoint(changed, id), { webhooks })
}

/** Makes a new signing secret, once for the idempotency key of the request. Throws Failure `not_found`. */
export const rotateEndpoint = (
  input: { params: { id: string } },
  overlapSeconds: number,
  exchange: ClientExchange,
  owners: WebhookOwners,
): Promise<EndpointWithSecret> =>
  onceWithSecret(exchange, input, owners, async () => {
    const { id } = input.params
    const { organizationId } = exchange.caller
    const rotated = await owners.webhooks.rotate(organizationId, known(id), overlapSeconds * 1000, actorOf(exchange))
    return ofEndpoint(rotated, id)
  })

/** Deletes an endpoint with its deliveries, and confirms it. Throws Failure `not_found`. */
export async function removeEndpoint(id: string, exchange: ClientExchange, { webhooks }: Owners<'webhooks'>) {
  ofEndpoint(await webhooks.remove(exchange.caller.organizationId, known(id), actorOf(exchange)), id)
  return deletedAnswer('webhook_endpoint.deleted', id)
}

interface EndpointWithSecret {
  webhook: WebhookView
  signing_secret: string
}

/** Makes a secret and returns it with its endpoint; a repeated request with the same key is refused. */
const onceWithSecret = (
  exchange: ClientExchange,
  input: unknown,
  owners: WebhookOwners,
  make: () => Promise<{ endpoint: WebhookEndpoint; secret: string }>,
): Promise<EndpointWithSecret> =>
  once(
    exchange,
    input,
    async () => {
      const { endpoint, secret } = await make()
      return { webhook: shownEndpoint(endpoint, owners), signing_secret: secret }
    },
    // The secret is not stored, so the answer names the endpoint.
    ({ webhook: { id } }) => ({
      message: `This 'Idempotency-Key' has created a secret of the webhook endpoint ${id}. It was shown once and is not stored. If it was lost, rotate the secret of that endpoint with a new key.`,
      facts: { webhook_id: id },
    }),
    owners,
  )

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
  ofEndpoint(await owners.webhooks.recordTest(endpoint, type, actorOf(exchange)), id)
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
