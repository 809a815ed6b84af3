import { z } from 'zod'
import { Failure } from '../../../core/failure.ts'
import { isId } from '../../../core/ids.ts'
import { array, boolean, namedObject, strictObject, string } from '../../../core/schemas/fields.ts'
import type { PublicJwk } from '../../../core/webhooks/signature.ts'
import {
  DeliveryView,
  deliveryView,
  WebhookSecretView,
  WebhookView,
  webhookSecretView,
} from '../../../core/webhooks/webhook-view.ts'
import { actorOf } from '../../http/access/reach.ts'
import { deletedObject, pageFields, pageOf, pageQuery } from '../../http/answer/page.ts'
import type { ClientExchange } from '../../http/request/exchange.ts'
import { once } from '../../http/request/idempotency.ts'
import { routeOf } from '../../http/request/route.ts'
import {
  changeEndpoint,
  endpointFields,
  findEndpoint,
  isEndpointId,
  keyedCodes,
  overlapField,
  removeEndpoint,
  rotateEndpoint,
  secretShownOnce,
  shownEndpoint,
  Tested,
  testEndpoint,
  type WebhookOwners,
  webhookTag,
} from '../../work/webhook-endpoint.ts'

const route = routeOf({ tag: webhookTag })
const isDeliveryId = (id: string): boolean => isId(id, 'msg_')

const DeliveryPage = namedObject('WebhookDeliveryPage', 'A page of deliveries.', {
  deliveries: array('The deliveries, newest first.', DeliveryView),
  ...pageFields,
})
const OneDelivery = namedObject('WebhookDeliveryAnswer', 'One delivery.', { delivery: DeliveryView })

const paging = {
  ...pageQuery(isDeliveryId),
  limit: z.coerce.number().int().min(1).max(50).default(20).describe('Most entries of the page, 1 to 50.'),
  status: z.enum(['pending', 'delivered', 'dead']).optional().describe('Only deliveries with this status.'),
}
const webhookId = string('Id of the endpoint: `whe_…`.')
const deliveryId = string('Id of the delivery: `msg_…`.')

async function deliveriesOf(
  exchange: ClientExchange,
  {
    limit,
    after,
    status,
    endpointId,
  }: {
    limit: number
    after?: string | undefined
    status?: 'pending' | 'delivered' | 'dead' | undefined
    endpointId?: string | undefined
  },
  { webhooks }: WebhookOwners,
): Promise<z.input<typeof DeliveryPage>> {
  const { organizationId } = exchange.caller
  const found = await webhooks.deliveries(organizationId, { limit: limit + 1, after, status, endpointId })
  const { entries, end } = pageOf(found, limit)
  return { deliveries: entries.map(deliveryView), ...end }
}

/** Sends a delivery again. Throws Failure `not_found`, also if it is of another endpoint than the given one. */
async function redeliver(id: string, exchange: ClientExchange, { webhooks }: WebhookOwners, endpointId?: string) {
  const { organizationId } = exchange.caller
  const found = isDeliveryId(id) ? await webhooks.delivery(organizationId, id) : undefined
  const again =
    found && (endpointId === undefined || found.endpointId === endpointId)
      ? await webhooks.redeliver(organizationId, id, actorOf(exchange))
      : undefined
  if (!again) throw new Failure('not_found', `Delivery ${id.slice(0, 64)} was not found.`)
  return { delivery: deliveryView(again) }
}

const again = {
  bucket: 'api',
  summary: 'Redeliver webhook',
  description:
    'Sends a delivery again, with all its attempts and the same id and body, whether it was delivered or is dead. A pending one is sent at once.',
  errorCodes: ['not_found'],
  response: OneDelivery,
  status: 202,
} as const

const path = '/api/organizations/:organization/webhook-secret'
const Organization = z.object({
  organization: string('Id of the organization of your token, as in `GET /api/me`.'),
})
const RotateSecret = strictObject('WebhookSecretRotate', 'How to replace the secret.', {
  overlap_seconds: overlapField,
})

const Jwk = z.object({
  kty: z.literal('OKP'),
  crv: z.literal('Ed25519'),
  x: string('The public key, base64url.'),
  kid: string('Id of the key.'),
  use: z.literal('sig'),
  alg: z.literal('EdDSA'),
}) satisfies z.ZodType<PublicJwk>
const Jwks = namedObject('JsonWebKeys', 'Public keys (RFC 7517).', { keys: array('The keys.', Jwk) })

/** Returns the organization of the path if it is the caller's. Throws Failure `organization_mismatch`. */
function ownOrganization(organization: string, { caller }: ClientExchange): string {
  if (organization === caller.organizationId) return organization
  throw new Failure(
    'organization_mismatch',
    `This token belongs to the organization ${caller.organizationId}, not to the one in the path.`,
  )
}

const base = '/api/webhooks'
const one = `${base}/:id` as const

const enabled = boolean('Whether events are sent. While it is false, none are recorded, and pending deliveries wait.')
const Create = strictObject('WebhookCreate', 'A webhook endpoint to create.', {
  ...endpointFields,
  enabled: enabled.default(true),
})
const Change = strictObject('WebhookChange', 'Fields of a webhook endpoint to change. Absent fields stay.', {
  name: endpointFields.name.optional(),
  url: endpointFields.url.optional(),
  event_types: endpointFields.event_types.optional(),
  enabled: enabled.optional(),
})
const Rotate = strictObject('WebhookRotate', 'How to replace the signing secret.', { overlap_seconds: overlapField })
const Test = strictObject('WebhookTest', 'What to send as a test.', {
  event_type: z.string().max(64).default('job.completed').describe('Type of the event of the test message.'),
})

const secret = string('The signing secret, `whsec_…`. It is shown only this once.')
const One = namedObject('WebhookAnswer', 'One webhook endpoint.', { webhook: WebhookView })
const WithSecret = namedObject('WebhookWithSecret', 'A webhook endpoint with its new signing secret.', {
  webhook: WebhookView,
  signing_secret: secret,
})
const Page = namedObject('WebhookPage', 'A page of webhook endpoints.', {
  webhooks: array('The endpoints, newest first.', WebhookView),
  ...pageFields,
})
const Deleted = deletedObject('webhook_endpoint.deleted', 'endpoint')
  .extend({ deleted: boolean('Always true.') })
  .meta({
    id: 'WebhookDeleted',
    description: 'Confirms that a webhook endpoint was deleted.',
  })
const Path = z.object({ id: string('Id of the endpoint: `whe_…`.') })

export const webhookRoutes = (owners: WebhookOwners) => [
  route(`POST ${base}`, 'admin:write', {
    bucket: 'api',
    summary: 'Create webhook',
    description:
      'Registers a URL to which events of the organization are sent as signed messages (Standard Webhooks), and returns the signing secret, which is shown only this once. An organization may have 32 endpoints.',
    errorCodes: [...keyedCodes, 'disk_full'],
    body: Create,
    example: { name: 'backend', url: 'https://example.com/webhooks', event_types: ['job.completed', 'job.failed'] },
    response: WithSecret,
    status: 201,
    handle: (input, exchange) =>
      once(
        exchange,
        input,
        async () => {
          const { name, url, event_types: eventTypes, enabled } = input.body
          const { organizationId } = exchange.caller
          const { origin } = exchange
          const options = { organizationId, name, url, eventTypes, enabled, origin }
          const created = await owners.webhooks.create(options, actorOf(exchange))
          return { webhook: shownEndpoint(created.endpoint, owners), signing_secret: created.secret }
        },
        ({ webhook }) => secretShownOnce(webhook),
        owners,
      ),
  }),
  route(`GET ${base}`, 'admin:read', {
    summary: 'List webhooks',
    description: 'Returns the webhook endpoints of the organization, newest first, without their secrets.',
    query: z.strictObject({
      ...pageQuery(isEndpointId),
    }),
    response: Page,
    handle: async ({ query: { limit, after } }, exchange) => {
      const found = await owners.webhooks.list(exchange.caller.organizationId, { limit: limit + 1, after })
      const { entries, end } = pageOf(found, limit)
      return { webhooks: entries.map(endpoint => shownEndpoint(endpoint, owners)), ...end }
    },
  }),
  route(`GET ${one}`, 'admin:read', {
    summary: 'Get webhook',
    description: 'Returns a webhook endpoint without its secret.',
    errorCodes: ['not_found'],
    params: Path,
    response: One,
    handle: async ({ params }, exchange) => ({
      webhook: shownEndpoint(await findEndpoint(params.id, exchange, owners), owners),
    }),
  }),
  route(`PATCH ${one}`, 'admin:write', {
    summary: 'Update webhook',
    description:
      'Changes a webhook endpoint, or disables and enables it. Pending deliveries are sent to the new URL; while it is disabled they wait.',
    errorCodes: ['not_found'],
    params: Path,
    body: Change,
    example: { enabled: false },
    response: One,
    handle: async ({ params, body }, exchange) => ({
      webhook: await changeEndpoint(params.id, body, exchange, owners),
    }),
  }),
  route(`DELETE ${one}`, 'admin:write', {
    summary: 'Delete webhook',
    description: 'Deletes a webhook endpoint with its deliveries, the pending ones included.',
    errorCodes: ['not_found'],
    params: Path,
    response: Deleted,
    handle: async ({ params }, exchange) => {
      await removeEndpoint(params.id, exchange, owners)
      return { id: params.id, object: 'webhook_endpoint.deleted' as const, deleted: true }
    },
  }),
  route(`POST ${one}/rotate`, 'admin:write', {
    bucket: 'api',
    summary: 'Rotate secret of webhook',
    description:
      'Makes a new signing secret, which is shown only this once. For `overlap_seconds` messages are signed with both secrets, so that receivers can change over.',
    errorCodes: ['not_found', ...keyedCodes],
    params: Path,
    body: Rotate,
    example: { overlap_seconds: 3600 },
    response: WithSecret,
    handle: (input, exchange) =>
      once(
        exchange,
        input,
        () => rotateEndpoint(input.params.id, input.body.overlap_seconds, exchange, owners),
        ({ webhook }) => secretShownOnce(webhook),
        owners,
      ),
  }),
  route(`POST ${one}/test`, 'admin:write', {
    bucket: 'api',
    summary: 'Test webhook',
    description:
      'Sends a signed message with `data: {"test": true}` at once and answers with what came of it. It is not sent again, and not listed among the deliveries.',
    errorCodes: ['not_found'],
    params: Path,
    body: Test,
    example: { event_type: 'job.completed' },
    response: Tested,
    handle: ({ params, body }, exchange) => testEndpoint(params.id, body.event_type, exchange, owners),
  }),
  route('GET /api/webhooks/:id/deliveries', 'admin:read', {
    summary: 'List deliveries of webhook',
    description: 'Returns the messages to an endpoint, newest first, each with its last attempt.',
    errorCodes: ['not_found'],
    params: z.object({ id: webhookId }),
    query: z.strictObject(paging),
    response: DeliveryPage,
    handle: async ({ params, query }, exchange) => {
      const { id: endpointId } = await findEndpoint(params.id, exchange, owners)
      return deliveriesOf(exchange, { ...query, endpointId }, owners)
    },
  }),
  route('GET /api/webhook-deliveries', 'admin:read', {
    summary: 'List deliveries of organization',
    description:
      'Returns the messages to all endpoints of the organization and to the webhooks of its requests, newest first.',
    query: z.strictObject({
      ...paging,
      webhook_id: webhookId.refine(isEndpointId, 'This is no id of an endpoint.').optional(),
    }),
    response: DeliveryPage,
    handle: ({ query: { webhook_id: endpointId, ...query } }, exchange) =>
      deliveriesOf(exchange, { ...query, endpointId }, owners),
  }),
  route('POST /api/webhooks/:id/deliveries/:delivery/redeliver', 'admin:write', {
    ...again,
    params: z.object({ id: webhookId, delivery: deliveryId }),
    handle: async ({ params }, exchange) => {
      const { id } = await findEndpoint(params.id, exchange, owners)
      return redeliver(params.delivery, exchange, owners, id)
    },
  }),
  route('POST /api/webhook-deliveries/:delivery/redeliver', 'admin:write', {
    ...again,
    params: z.object({ delivery: deliveryId }),
    handle: ({ params }, exchange) => redeliver(params.delivery, exchange, owners),
  }),
  route(`GET ${path}`, 'admin:read', {
    summary: 'Get webhook secret',
    description:
      'Returns the secret that signs the webhooks of requests: `webhook_url` of jobs, executions and generations. Registered endpoints have secrets of their own.',
    errorCodes: ['organization_mismatch'],
    params: Organization,
    response: WebhookSecretView,
    handle: async ({ params }, exchange) =>
      webhookSecretView(await owners.webhooks.organizationSecret(ownOrganization(params.organization, exchange))),
  }),
  route(`POST ${path}/rotate`, 'admin:write', {
    bucket: 'api',
    summary: 'Rotate webhook secret',
    description:
      'Makes a new secret for the webhooks of requests. For `overlap_seconds` messages are signed with both secrets.',
    errorCodes: ['organization_mismatch'],
    params: Organization,
    body: RotateSecret,
    example: { overlap_seconds: 3600 },
    response: WebhookSecretView,
    handle: async ({ params, body }, exchange) =>
      webhookSecretView(
        await owners.webhooks.rotateOrganizationSecret(
          ownOrganization(params.organization, exchange),
          body.overlap_seconds * 1000,
          actorOf(exchange),
        ),
      ),
  }),
  route('GET /.well-known/jwks.json', 'public', {
    aliases: ['/fal/rest/.well-known/jwks.json'],
    summary: 'Get public keys of webhooks',
    description:
      "Returns the public keys that verify webhooks with fal's signature: those of requests with `?fal_webhook=`.",
    response: Jwks,
    handle: () => ({ keys: owners.webhooks.publicKeys }),
  }),
]
