import { z } from 'zod'
import { isId } from '../../../core/ids.ts'
import { array, boolean, namedObject, optionalOneOf, strictObject, string } from '../../../core/schemas/fields.ts'
import type { PublicJwk } from '../../../core/webhooks/signature.ts'
import {
  DeliveryView,
  deliveryView,
  WebhookSecretView,
  WebhookView,
  webhookSecretView,
} from '../../../core/webhooks/webhook-view.ts'
import { actorOf, requireOwn } from '../../http/access/reach.ts'
import { alwaysTrue, deletedObject, pageFields, pageOf, pageQuery } from '../../http/answer/page.ts'
import { errorGroups, found } from '../../http/request/errors.ts'
import type { ClientExchange } from '../../http/request/exchange.ts'
import { routeOf } from '../../http/request/route.ts'
import {
  changeEndpoint,
  createEndpoint,
  endpointFields,
  findEndpoint,
  isEndpointId,
  listEndpoints,
  overlapField,
  removeEndpoint,
  rotateEndpoint,
  shownEndpoint,
  Tested,
  testEndpoint,
  type WebhookOwners,
  webhookTag,
} from '../../work/webhook-endpoint.ts'

const route = routeOf({ tag: webhookTag })
const isDeliveryId = (id: string) => isId(id, 'msg_')

const DeliveryPage = namedObject('WebhookDeliveryPage', 'A page of deliveries.', {
  deliveries: array('The deliveries, newest first.', DeliveryView),
  ...pageFields,
})
const OneDelivery = namedObject('WebhookDeliveryAnswer', 'One delivery.', { delivery: DeliveryView })

const DeliveryQuery = z.strictObject({
  ...pageQuery(isDeliveryId),
  limit: z.coerce.number().int().min(1).max(50).default(20).describe('Most entries of the page, 1 to 50.'),
  status: optionalOneOf('Only deliveries with this status.', ['pending', 'delivered', 'dead']),
})
const Endpoint = z.object({ id: string('Id of the endpoint: `whe_…`.') })
const ofEndpoint = { params: Endpoint, errorCodes: ['not_found'] } as const
const delivery = string('Id of the delivery: `msg_…`.')

async function deliveriesOf(
  exchange: ClientExchange,
  { limit, ...filter }: z.output<typeof DeliveryQuery> & { endpointId?: string | undefined },
  { webhooks }: WebhookOwners,
) {
  const { entries, end } = pageOf(
    await webhooks.deliveries(exchange.caller.organizationId, { ...filter, limit: limit + 1 }),
    limit,
  )
  return { deliveries: entries.map(deliveryView), ...end }
}

/** Sends a delivery again. Throws Failure `not_found`, also if it is of another endpoint than the given one. */
async function redeliver(id: string, exchange: ClientExchange, { webhooks }: WebhookOwners, endpointId?: string) {
  const { organizationId } = exchange.caller
  const before = isDeliveryId(id) ? await webhooks.delivery(organizationId, id) : undefined
  const isOfEndpoint = before && (endpointId === undefined || before.endpointId === endpointId)
  const again = isOfEndpoint && (await webhooks.redeliver(organizationId, id, actorOf(exchange)))
  return { delivery: deliveryView(found(again, 'Delivery', id)) }
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

const base = '/api/webhooks'
const one = `${base}/:id` as const

const fields = {
  ...endpointFields,
  enabled: boolean('Whether events are sent. While it is false, none are recorded, and pending deliveries wait.'),
}
const Create = strictObject('WebhookCreate', 'A webhook endpoint to create.', {
  ...fields,
  enabled: fields.enabled.default(true),
})
const Change = z
  .strictObject(fields)
  .partial()
  .meta({ id: 'WebhookChange', description: 'Fields of a webhook endpoint to change. Absent fields stay.' })
const Rotate = strictObject('WebhookRotate', 'How to replace the signing secret.', { overlap_seconds: overlapField })
const Test = strictObject('WebhookTest', 'What to send as a test.', {
  event_type: z.string().max(64).default('job.completed').describe('Type of the event of the test message.'),
})

const One = namedObject('WebhookAnswer', 'One webhook endpoint.', { webhook: WebhookView })
const WithSecret = namedObject('WebhookWithSecret', 'A webhook endpoint with its new signing secret.', {
  webhook: WebhookView,
  signing_secret: string('The signing secret, `whsec_…`. It is shown only this once.'),
})
const Page = namedObject('WebhookPage', 'A page of webhook endpoints.', {
  webhooks: array('The endpoints, newest first.', WebhookView),
  ...pageFields,
})
const Deleted = deletedObject(
  'WebhookDeleted',
  'Confirms that a webhook endpoint was deleted.',
  ['webhook_endpoint.deleted', 'endpoint'],
  alwaysTrue,
)

const endpointRoutes = (owners: WebhookOwners) => [
  route(`POST ${base}`, 'admin:write', {
    bucket: 'api',
    summary: 'Create webhook',
    description:
      'Registers a URL to which events of the organization are sent as signed messages (Standard Webhooks), and returns the signing secret, which is shown only this once. An organization may have 32 endpoints.',
    errorCodes: [...errorGroups.keyed, 'disk_full'],
    body: Create,
    example: { name: 'backend', url: 'https://example.com/webhooks', event_types: ['job.completed', 'job.failed'] },
    response: WithSecret,
    status: 201,
    handle: (input, exchange) => createEndpoint(input, exchange, owners),
  }),
  route(`GET ${base}`, 'admin:read', {
    summary: 'List webhooks',
    description: 'Returns the webhook endpoints of the organization, newest first, without their secrets.',
    query: z.strictObject(pageQuery(isEndpointId)),
    response: Page,
    handle: async ({ query }, exchange) => {
      const { entries, end } = pageOf(await listEndpoints(query, exchange, owners), query.limit)
      return { webhooks: entries, ...end }
    },
  }),
  route(`GET ${one}`, 'admin:read', {
    summary: 'Get webhook',
    description: 'Returns a webhook endpoint without its secret.',
    ...ofEndpoint,
    response: One,
    handle: async ({ params }, exchange) => ({
      webhook: shownEndpoint(await findEndpoint(params.id, exchange, owners), owners),
    }),
  }),
  route(`PATCH ${one}`, 'admin:write', {
    summary: 'Update webhook',
    description:
      'Changes a webhook endpoint, or disables and enables it. Pending deliveries are sent to the new URL; while it is disabled they wait.',
    ...ofEndpoint,
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
    ...ofEndpoint,
    response: Deleted,
    handle: ({ params }, exchange) => removeEndpoint(params.id, exchange, owners),
  }),
  route(`POST ${one}/rotate`, 'admin:write', {
    bucket: 'api',
    summary: 'Rotate secret of webhook',
    description:
      'Makes a new signing secret, which is shown only this once. For `overlap_seconds` messages are signed with both secrets, so that receivers can change over.',
    errorCodes: ['not_found', ...errorGroups.keyed],
    params: Endpoint,
    body: Rotate,
    example: { overlap_seconds: 3600 },
    response: WithSecret,
    handle: (input, exchange) => rotateEndpoint(input, input.body.overlap_seconds, exchange, owners),
  }),
  route(`POST ${one}/test`, 'admin:write', {
    bucket: 'api',
    summary: 'Test webhook',
    description:
      'Sends a signed message with `data: {"test": true}` at once and answers with what came of it. It is not sent again, and not listed among the deliveries.',
    ...ofEndpoint,
    body: Test,
    example: { event_type: 'job.completed' },
    response: Tested,
    handle: ({ params, body }, exchange) => testEndpoint(params.id, body.event_type, exchange, owners),
  }),
]

const deliveryRoutes = (owners: WebhookOwners) => [
  route('GET /api/webhooks/:id/deliveries', 'admin:read', {
    summary: 'List deliveries of webhook',
    description: 'Returns the messages to an endpoint, newest first, each with its last attempt.',
    ...ofEndpoint,
    query: DeliveryQuery,
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
    query: DeliveryQuery.extend({
      webhook_id: Endpoint.shape.id.refine(isEndpointId, 'This is no id of an endpoint.').optional(),
    }),
    response: DeliveryPage,
    handle: ({ query: { webhook_id: endpointId, ...query } }, exchange) =>
      deliveriesOf(exchange, { ...query, endpointId }, owners),
  }),
  route('POST /api/webhooks/:id/deliveries/:delivery/redeliver', 'admin:write', {
    ...again,
    params: Endpoint.extend({ delivery }),
    handle: async ({ params }, exchange) => {
      const { id } = await findEndpoint(params.id, exchange, owners)
      return redeliver(params.delivery, exchange, owners, id)
    },
  }),
  route('POST /api/webhook-deliveries/:delivery/redeliver', 'admin:write', {
    ...again,
    params: z.object({ delivery }),
    handle: ({ params }, exchange) => redeliver(params.delivery, exchange, owners),
  }),
]

/** The routes of the secret and the keys by which receivers verify the webhooks of requests. */
const verificationRoutes = (owners: WebhookOwners) => [
  route(`GET ${path}`, 'admin:read', {
    summary: 'Get webhook secret',
    description:
      'Returns the secret that signs the webhooks of requests: `webhook_url` of jobs, executions and generations. Registered endpoints have secrets of their own.',
    errorCodes: ['organization_mismatch'],
    params: Organization,
    response: WebhookSecretView,
    handle: async ({ params: { organization } }, exchange) => {
      requireOwn(organization, exchange)
      return webhookSecretView(await owners.webhooks.organizationSecret(organization))
    },
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
    handle: async ({ params: { organization }, body }, exchange) => {
      requireOwn(organization, exchange)
      const overlapMs = body.overlap_seconds * 1000
      return webhookSecretView(
        await owners.webhooks.rotateOrganizationSecret(organization, overlapMs, actorOf(exchange)),
      )
    },
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

export const webhookRoutes = (owners: WebhookOwners) => [
  ...endpointRoutes(owners),
  ...deliveryRoutes(owners),
  ...verificationRoutes(owners),
]
