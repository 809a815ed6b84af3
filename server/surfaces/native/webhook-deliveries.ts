import { z } from 'zod'
import { Failure } from '../../../core/failure.ts'
import { isId } from '../../../core/ids.ts'
import { string } from '../../../core/schemas/fields.ts'
import { DeliveryView, deliveryView } from '../../../core/webhooks/webhook-view.ts'
import { actorOf } from '../../http/access/reach.ts'
import { cursorDescription, pageFields } from '../../http/answer/page.ts'
import type { Call } from '../../http/request/call.ts'
import { routeOf } from '../../http/request/route.ts'
import { findEndpoint, isEndpointId, type WebhookOwners, webhookTag } from '../../work/webhook-endpoint.ts'

const route = routeOf({ tag: webhookTag })
const isDeliveryId = (id: string): boolean => id.startsWith('msg_') && isId(id)

const Page = z
  .object({ deliveries: z.array(DeliveryView).describe('The deliveries, newest first.'), ...pageFields })
  .meta({ id: 'WebhookDeliveryPage', description: 'A page of deliveries.' })
const One = z.object({ delivery: DeliveryView }).meta({ id: 'WebhookDeliveryAnswer', description: 'One delivery.' })

const paging = {
  limit: z.coerce.number().int().min(1).max(50).default(20).describe('Most entries of the page, 1 to 50.'),
  after: z.string().refine(isDeliveryId, 'This is no cursor of the list.').optional().describe(cursorDescription),
  status: z.enum(['pending', 'delivered', 'dead']).optional().describe('Only deliveries with this status.'),
}
const webhookId = string('Id of the endpoint: `whe_…`.')
const deliveryId = string('Id of the delivery: `msg_…`.')

async function pageOf(
  call: Call,
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
): Promise<z.input<typeof Page>> {
  const { organizationId } = call.caller
  const found = await webhooks.deliveries(organizationId, { limit: limit + 1, after, status, endpointId })
  const page = found.slice(0, limit)
  const more = found.length > limit
  return { deliveries: page.map(deliveryView), has_more: more, next_cursor: more ? page.at(-1)!.id : null }
}

/** Sends a delivery again. Throws Failure `not_found`, also if it is of another endpoint than the given one. */
async function redeliver(id: string, call: Call, { webhooks }: WebhookOwners, endpointId?: string) {
  const { organizationId } = call.caller
  const found = isDeliveryId(id) ? await webhooks.delivery(organizationId, id) : undefined
  const again =
    found && (endpointId === undefined || found.endpointId === endpointId)
      ? await webhooks.redeliver(organizationId, id, actorOf(call))
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
  response: One,
  status: 202,
} as const

export const webhookDeliveryRoutes = (owners: WebhookOwners) => [
  route('GET /api/webhooks/:id/deliveries', 'admin:read', {
    summary: 'List deliveries of webhook',
    description: 'Returns the messages to an endpoint, newest first, each with its last attempt.',
    errorCodes: ['not_found'],
    params: z.object({ id: webhookId }),
    query: z.strictObject(paging),
    response: Page,
    handle: async ({ params, query }, call) => {
      const { id: endpointId } = await findEndpoint(params.id, call, owners)
      return pageOf(call, { ...query, endpointId }, owners)
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
    response: Page,
    handle: ({ query: { webhook_id: endpointId, ...query } }, call) => pageOf(call, { ...query, endpointId }, owners),
  }),
  route('POST /api/webhooks/:id/deliveries/:delivery/redeliver', 'admin:write', {
    ...again,
    params: z.object({ id: webhookId, delivery: deliveryId }),
    handle: async ({ params }, call) => {
      const { id } = await findEndpoint(params.id, call, owners)
      return redeliver(params.delivery, call, owners, id)
    },
  }),
  route('POST /api/webhook-deliveries/:delivery/redeliver', 'admin:write', {
    ...again,
    params: z.object({ delivery: deliveryId }),
    handle: ({ params }, call) => redeliver(params.delivery, call, owners),
  }),
]
