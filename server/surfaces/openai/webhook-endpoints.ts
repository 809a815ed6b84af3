import { z } from 'zod'
import { invalid } from '../../../core/failure.ts'
import {
  array,
  boolean,
  namedObject,
  nullableString,
  nullish,
  optionalString,
  string,
} from '../../../core/schemas/fields.ts'
import { publicEventTypes } from '../../../core/store/event-types.ts'
import { WebhookView } from '../../../core/webhooks/webhook-view.ts'
import { alwaysTrue, deletedObject, listPage } from '../../http/answer/page.ts'
import { errorGroups } from '../../http/request/errors.ts'
import { routeOf } from '../../http/request/route.ts'
import {
  changeEndpoint,
  createEndpoint,
  endpointFields,
  findEndpoint,
  isEndpointId,
  listEndpoints,
  removeEndpoint,
  rotateEndpoint,
  shownEndpoint,
  Tested,
  testEndpoint,
  type WebhookOwners,
  webhookTag,
} from '../../work/webhook-endpoint.ts'

const route = routeOf({ tag: webhookTag })
const base = '/std/v1/webhook_endpoints'
const one = `${base}/:id` as const
const daySeconds = 86_400

const Create = namedObject('WebhookEndpointCreate', 'A webhook endpoint to create.', endpointFields)
const Change = z
  .object(endpointFields)
  .partial()
  .meta({ id: 'WebhookEndpointChange', description: 'Fields of a webhook endpoint to change. Absent fields stay.' })
const Rotate = namedObject('WebhookEndpointRotate', 'How to replace the signing secret.', {
  keep_old_secret_active_for_24_hours: nullish(
    z.boolean(),
    'Whether messages are signed with the previous secret too for 24 hours. Default: false.',
  ),
})
const Test = namedObject('WebhookEndpointTest', 'What to send as a test.', {
  event_type: z.string().max(64).describe('Type of the event of the test message.'),
})

const WithSecret = WebhookView.extend({
  signing_secret: string('The signing secret, `whsec_…`. It is shown only this once.'),
}).meta({ id: 'WebhookEndpointWithSecret', description: 'A webhook endpoint with its new signing secret.' })
const List = namedObject('WebhookEndpointList', 'A page of webhook endpoints.', {
  object: z.literal('list'),
  data: array('The endpoints, newest first.', WebhookView),
  first_id: nullableString('Id of the first entry; null without any.'),
  last_id: nullableString('Id of the last entry; null without any.'),
  has_more: boolean('Whether there are more entries.'),
})
const Deleted = deletedObject(
  'WebhookEndpointDeleted',
  'Confirms that a webhook endpoint was deleted.',
  ['webhook_endpoint.deleted', 'endpoint'],
  alwaysTrue,
)
const Types = namedObject('WebhookEventTypes', 'Types of events that webhooks can have.', {
  object: z.literal('list'),
  data: array('The types.', z.string()),
})

const Path = z.object({ id: string('Id of the endpoint: `whe_…`.') })
const ofEndpoint = { params: Path, errorCodes: ['not_found'] } as const
/** The answer with a secret in the form of the OpenAI API. */
const withSecret = ({ webhook, signing_secret }: Awaited<ReturnType<typeof createEndpoint>>) => ({
  ...webhook,
  signing_secret,
})

const same = 'The same endpoints as under `/api/webhooks`, in the form of the OpenAI API.'

export const webhookEndpointRoutes = (owners: WebhookOwners) => [
  route('GET /std/v1/webhook_event_types', 'admin:read', {
    summary: 'List event types of webhooks',
    description: 'Returns the types of events that an endpoint can have. `job.*` stands for all that begin so.',
    response: Types,
    handle: () => ({ object: 'list' as const, data: [...publicEventTypes] }),
  }),
  route(`GET ${base}`, 'admin:read', {
    summary: 'List webhook endpoints',
    description: same,
    errorCodes: ['not_found'],
    query: z.object({
      limit: z.coerce.number().int().min(1).max(100).default(20).describe('Most entries of the page, 1 to 100.'),
      after: optionalString('Id of the last endpoint of the page before. Default: the first page.'),
    }),
    response: List,
    handle: async ({ query: { limit, after } }, exchange) => {
      if (after !== undefined && !isEndpointId(after)) throw invalid('after', "'after' must be the id of an endpoint.")
      const endpoints = await listEndpoints({ limit, after }, exchange, owners)
      return listPage(endpoints.slice(0, limit), endpoints.length > limit)
    },
  }),
  route(`POST ${base}`, 'admin:write', {
    bucket: 'api',
    summary: 'Create webhook endpoint',
    description: same,
    errorCodes: [...errorGroups.keyed, 'disk_full'],
    body: Create,
    example: { name: 'backend', url: 'https://example.com/webhooks', event_types: ['job.completed'] },
    response: WithSecret,
    handle: async (input, exchange) => withSecret(await createEndpoint(input, exchange, owners)),
  }),
  route(`GET ${one}`, 'admin:read', {
    summary: 'Get webhook endpoint',
    description: same,
    ...ofEndpoint,
    response: WebhookView,
    handle: async ({ params }, exchange) => shownEndpoint(await findEndpoint(params.id, exchange, owners), owners),
  }),
  route(`POST ${one}`, 'admin:write', {
    bucket: 'api',
    summary: 'Update webhook endpoint',
    description: same,
    ...ofEndpoint,
    body: Change,
    example: { name: 'backend' },
    response: WebhookView,
    handle: ({ params, body }, exchange) => changeEndpoint(params.id, body, exchange, owners),
  }),
  route(`DELETE ${one}`, 'admin:write', {
    summary: 'Delete webhook endpoint',
    description: same,
    ...ofEndpoint,
    response: Deleted,
    handle: ({ params }, exchange) => removeEndpoint(params.id, exchange, owners),
  }),
  route(`POST ${one}/rotate_secret`, 'admin:write', {
    bucket: 'api',
    summary: 'Rotate secret of webhook endpoint',
    description: same,
    errorCodes: ['not_found', ...errorGroups.keyed],
    params: Path,
    body: Rotate,
    example: { keep_old_secret_active_for_24_hours: true },
    response: WithSecret,
    handle: async (input, exchange) => {
      const overlap = input.body.keep_old_secret_active_for_24_hours === true ? daySeconds : 0
      return withSecret(await rotateEndpoint(input, overlap, exchange, owners))
    },
  }),
  route(`POST ${one}/test`, 'admin:write', {
    bucket: 'api',
    summary: 'Test webhook endpoint',
    description: same,
    ...ofEndpoint,
    body: Test,
    example: { event_type: 'job.completed' },
    response: Tested,
    handle: ({ params, body }, exchange) => testEndpoint(params.id, body.event_type, exchange, owners),
  }),
]
