import { z } from 'zod'
import { invalid } from '../../../core/failure.ts'
import type { Model } from '../../../core/models/model.ts'
import { anyObject, array, integer, namedObject, nullableString, string } from '../../../core/schemas/fields.ts'
import { isSlugTask } from '../../../core/schemas/task.ts'
import { inputSchema } from '../../../core/tasks/generation/input-schema.ts'
import type { ClientExchange } from '../../http/request/exchange.ts'
import type { Owners } from '../../http/request/owners.ts'
import { visibleModels } from '../../work/allowed-models.ts'
import { findReplicateModel, replicateName, replicateRoute, replicateVersion } from './view.ts'

const params = {
  owner: string('First part of the id of the model, or `local` for an id of one part.'),
  name: string('The rest of the id.'),
}
const Version = namedObject('ReplicateVersion', 'The version of a model.', {
  id: string('Id of the version. A model has one.'),
  created_at: string('When the configuration was last read, ISO 8601.'),
  cog_version: string('Always empty.'),
  openapi_schema: anyObject('JSON Schemas of the inputs, by task.'),
})
const ModelObject = namedObject('ReplicateModel', "A model in Replicate's form.", {
  url: string('Address of the model.'),
  owner: string('First part of its name.'),
  name: string('Rest of its name.'),
  description: nullableString('`description` in `infer.yaml`.'),
  visibility: z.literal('public'),
  run_count: integer('Always 0.'),
  cover_image_url: z.null().describe('Always null.'),
  default_example: z.null().describe('Always null.'),
  latest_version: Version,
})
const Models = namedObject('ReplicateModels', 'Models that the token may use.', {
  previous: z.null().describe('Always null.'),
  next: z.null().describe('Always null: all models are on one page.'),
  results: array('The models.', ModelObject),
})
const Versions = namedObject('ReplicateVersions', 'The versions of a model.', {
  previous: z.null().describe('Always null.'),
  next: z.null().describe('Always null.'),
  results: array('The only version.', Version),
})
const Account = namedObject('ReplicateAccount', 'The organization of the token.', {
  type: z.literal('organization'),
  username: string('Name of the organization.'),
  name: string('The same.'),
})
const Secret = namedObject('ReplicateWebhookSecret', 'The secret that signs webhooks.', {
  key: string('The secret: `whsec_…`.'),
})

const versionView = (model: Model, { registry }: Owners<'registry'>): z.input<typeof Version> => ({
  id: replicateVersion(model),
  created_at: new Date(registry.readAt).toISOString(),
  cog_version: '',
  openapi_schema: Object.fromEntries(
    model.tasks.filter(isSlugTask).map(task => [task, inputSchema(task, model.resolutions) as Record<string, unknown>]),
  ),
})

function modelView(model: Model, { origin }: ClientExchange, owners: Owners<'registry'>): z.input<typeof ModelObject> {
  const [owner, ...rest] = replicateName(model).split('/')
  return {
    url: `${origin}/replicate/v1/models/${replicateName(model)}`,
    owner: owner!,
    name: rest.join('/'),
    description: model.description ?? null,
    visibility: 'public',
    run_count: 0,
    cover_image_url: null,
    default_example: null,
    latest_version: versionView(model, owners),
  }
}

const alone = { previous: null, next: null }

/** The routes of models, of the account and of the webhooks' secret in Replicate's form. */
export const replicateModelRoutes = (owners: Owners<'registry' | 'webhooks'>) => {
  const find = ({ owner, name }: { owner: string; name: string }, exchange: ClientExchange) =>
    findReplicateModel(`${owner}/${name}`, exchange, owners)
  return [
    replicateRoute('GET /replicate/v1/models', 'user:read', {
      summary: 'List models',
      description: 'Returns the models that the token may use.',
      response: Models,
      handle: (_, exchange) => ({
        ...alone,
        results: visibleModels(exchange, owners).map(model => modelView(model, exchange, owners)),
      }),
    }),
    replicateRoute('GET /replicate/v1/models/:owner/:name', 'user:read', {
      summary: 'Get model',
      description: 'Returns a model with its only version.',
      errorCodes: ['model_not_found'],
      params: z.object(params),
      response: ModelObject,
      handle: ({ params: path }, exchange) => modelView(find(path, exchange), exchange, owners),
    }),
    replicateRoute('GET /replicate/v1/models/:owner/:name/versions', 'user:read', {
      summary: 'List versions',
      description: 'Returns the only version of a model.',
      errorCodes: ['model_not_found'],
      params: z.object(params),
      response: Versions,
      handle: ({ params: path }, exchange) => ({ ...alone, results: [versionView(find(path, exchange), owners)] }),
    }),
    replicateRoute('GET /replicate/v1/models/:owner/:name/versions/:id', 'user:read', {
      summary: 'Get version',
      description: 'Returns the only version of a model by its id.',
      errorCodes: ['model_not_found', 'not_found'],
      params: z.object({ ...params, id: string('Id of the version.') }),
      response: Version,
      handle: ({ params: path }, exchange) => {
        const version = versionView(find(path, exchange), owners)
        if (version.id === path.id) return version
        const name = `${path.owner}/${path.name}`
        throw invalid('id', `The model '${name}' has only the version ${version.id}.`, 'not_found')
      },
    }),
    replicateRoute('GET /replicate/v1/account', 'user:read', {
      summary: 'Get account',
      description: 'Returns the organization of the token.',
      response: Account,
      handle: (_, { caller }) => ({
        type: 'organization' as const,
        username: caller.token.organizationName,
        name: caller.token.organizationName,
      }),
    }),
    replicateRoute('GET /replicate/v1/webhooks/default/secret', 'admin:read', {
      summary: 'Get webhook secret',
      description:
        "Returns the secret that signs the webhooks of predictions, for `validateWebhook` of Replicate's clients.",
      response: Secret,
      handle: async (_, exchange) => ({
        key: (await owners.webhooks.organizationSecret(exchange.caller.organizationId)).secret,
      }),
    }),
  ]
}
