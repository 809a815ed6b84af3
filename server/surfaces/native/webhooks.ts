import { z } from 'zod'
import { boolean, string } from '../../../core/schemas/fields.ts'
import { WebhookView } from '../../../core/webhooks/webhook-view.ts'
import { actorOf } from '../../http/access/reach.ts'
import { cursorDescription, pageFields, pageLimit } from '../../http/answer/page.ts'
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
const base = '/api/webhooks'
const one = `${base}/:id` as const

const enabled = boolean('Whether events are sent. While it is false, none are recorded, and pending deliveries wait.')
const Create = z
  .strictObject({ ...endpointFields, enabled: enabled.default(true) })
  .meta({ id: 'WebhookCreate', description: 'A webhook endpoint to create.' })
const Change = z
  .strictObject({
    name: endpointFields.name.optional(),
    url: endpointFields.url.optional(),
    event_types: endpointFields.event_types.optional(),
    enabled: enabled.optional(),
  })
  .meta({ id: 'WebhookChange', description: 'Fields of a webhook endpoint to change. Absent fields stay.' })
const Rotate = z
  .strictObject({ overlap_seconds: overlapField })
  .meta({ id: 'WebhookRotate', description: 'How to replace the signing secret.' })
const Test = z
  .strictObject({
    event_type: z.string().max(64).default('job.completed').describe('Type of the event of the test message.'),
  })
  .meta({ id: 'WebhookTest', description: 'What to send as a test.' })

const secret = string('The signing secret, `whsec_…`. It is shown only this once.')
const One = z.object({ webhook: WebhookView }).meta({ id: 'WebhookAnswer', description: 'One webhook endpoint.' })
const WithSecret = z
  .object({ webhook: WebhookView, signing_secret: secret })
  .meta({ id: 'WebhookWithSecret', description: 'A webhook endpoint with its new signing secret.' })
const Page = z
  .object({ webhooks: z.array(WebhookView).describe('The endpoints, newest first.'), ...pageFields })
  .meta({ id: 'WebhookPage', description: 'A page of webhook endpoints.' })
const Deleted = z
  .object({
    id: string('Id of the endpoint.'),
    object: z.literal('webhook_endpoint.deleted'),
    deleted: boolean('Always true.'),
  })
  .meta({ id: 'WebhookDeleted', description: 'Confirms that a webhook endpoint was deleted.' })
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
    handle: (input, call) =>
      once(
        call,
        input,
        async () => {
          const { name, url, event_types: eventTypes, enabled } = input.body
          const { organizationId } = call.caller
          const { origin } = call
          const options = { organizationId, name, url, eventTypes, enabled, origin }
          const created = await owners.webhooks.create(options, actorOf(call))
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
      limit: pageLimit,
      after: z.string().refine(isEndpointId, 'This is no cursor of the list.').optional().describe(cursorDescription),
    }),
    response: Page,
    handle: async ({ query: { limit, after } }, call) => {
      const found = await owners.webhooks.list(call.caller.organizationId, { limit: limit + 1, after })
      const page = found.slice(0, limit)
      const more = found.length > limit
      return {
        webhooks: page.map(endpoint => shownEndpoint(endpoint, owners)),
        has_more: more,
        next_cursor: more ? page.at(-1)!.id : null,
      }
    },
  }),
  route(`GET ${one}`, 'admin:read', {
    summary: 'Get webhook',
    description: 'Returns a webhook endpoint without its secret.',
    errorCodes: ['not_found'],
    params: Path,
    response: One,
    handle: async ({ params }, call) => ({
      webhook: shownEndpoint(await findEndpoint(params.id, call, owners), owners),
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
    handle: async ({ params, body }, call) => ({
      webhook: await changeEndpoint(params.id, body, call, owners),
    }),
  }),
  route(`DELETE ${one}`, 'admin:write', {
    summary: 'Delete webhook',
    description: 'Deletes a webhook endpoint with its deliveries, the pending ones included.',
    errorCodes: ['not_found'],
    params: Path,
    response: Deleted,
    handle: async ({ params }, call) => {
      await removeEndpoint(params.id, call, owners)
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
    handle: (input, call) =>
      once(
        call,
        input,
        () => rotateEndpoint(input.params.id, input.body.overlap_seconds, call, owners),
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
    handle: ({ params, body }, call) => testEndpoint(params.id, body.event_type, call, owners),
  }),
]
