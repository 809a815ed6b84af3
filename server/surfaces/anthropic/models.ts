import { z } from 'zod'
import { modelAllowed } from '../../../core/accounts/model-allowed.ts'
import { Failure } from '../../../core/failure.ts'
import type { Model } from '../../../core/models/model.ts'
import { didYouMean, nearestModels } from '../../../core/nearest.ts'
import { boolean, nullableString, string } from '../../../core/schemas/fields.ts'
import { isFor } from '../../../core/schemas/task.ts'
import type { Call } from '../../http/request/call.ts'
import type { Owners } from '../../http/request/owners.ts'
import { anthropicRoute } from './anthropic-route.ts'

const ModelInfo = z
  .object({
    type: z.literal('model'),
    id: string('Id of the model: the value of `model` in a request.'),
    display_name: string('`description` in `infer.yaml`, else the id.'),
    created_at: string('When the configuration was last read (RFC 3339).'),
  })
  .meta({ id: 'AnthropicModel', description: 'A model in the form of Anthropic.' })

const ModelPage = z
  .object({
    data: z.array(ModelInfo).describe('The models.'),
    has_more: boolean('Whether there are more in this direction.'),
    first_id: nullableString('Id of the first model; null without one.'),
    last_id: nullableString('Id of the last model; null without one.'),
  })
  .meta({ id: 'AnthropicModelList', description: 'Models that answer chats, in the form of Anthropic.' })

type ModelOwners = Pick<Owners, 'registry'>

/** Enabled models that answer chats and that the token may use. */
const visible = (call: Call, { registry }: ModelOwners): Model[] =>
  registry
    .all()
    .filter(({ id, enabled, tasks }) => enabled && isFor(tasks, 'chat') && modelAllowed(call.caller.token.models, id))

const infoOf = ({ id, description }: Model, { registry }: ModelOwners) => ({
  type: 'model' as const,
  id,
  display_name: description ?? id,
  created_at: new Date(registry.readAt).toISOString(),
})

const cursor = z.string().max(256).optional()

export const anthropicModelRoutes = (owners: ModelOwners) => [
  anthropicRoute('GET /anthropic/v1/models', 'user:read', {
    summary: 'List models (Anthropic)',
    description: 'Returns the models that answer chats and that the token may use.',
    query: z.object({
      limit: z.coerce.number().int().min(1).max(1000).default(20).describe('Most models to return. Default: 20.'),
      after_id: cursor.describe('Only models after the one with this id.'),
      before_id: cursor.describe('Only models before the one with this id.'),
    }),
    response: ModelPage,
    handle({ query: { limit, after_id, before_id } }, call) {
      const all = visible(call, owners)
      const after = after_id === undefined ? 0 : all.findIndex(({ id }) => id === after_id) + 1
      const before = before_id === undefined ? -1 : all.findIndex(({ id }) => id === before_id)
      const range = all.slice(after, before < 0 ? undefined : before)
      const page = before < 0 ? range.slice(0, limit) : range.slice(-limit)
      return {
        data: page.map(model => infoOf(model, owners)),
        has_more: page.length < range.length,
        first_id: page[0]?.id ?? null,
        last_id: page.at(-1)?.id ?? null,
      }
    },
  }),
  anthropicRoute('GET /anthropic/v1/models/**:id', 'user:read', {
    summary: 'Get model (Anthropic)',
    description: 'Returns one model that answers chats and that the token may use.',
    errorCodes: ['model_not_found'],
    params: z.object({ id: string('Id of the model. It may contain `/`.') }),
    response: ModelInfo,
    handle({ params }, call) {
      const models = visible(call, owners)
      const model = models.find(({ id }) => id === params.id)
      if (model) return infoOf(model, owners)
      const meant = didYouMean(
        nearestModels(
          params.id,
          models.map(({ id }) => id),
        ),
      )
      throw new Failure(
        'model_not_found',
        `The model '${params.id}' does not exist here.${meant} GET /anthropic/v1/models lists the existing ones.`,
        { param: 'model' },
      )
    },
  }),
]
