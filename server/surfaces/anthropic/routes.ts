import { z } from 'zod'
import { anthropicError, anthropicStatus } from '../../../core/dialects/anthropic/anthropic-form.ts'
import {
  AnthropicCount,
  AnthropicCountRequest,
  AnthropicMessage,
  AnthropicRequest,
} from '../../../core/dialects/anthropic/anthropic-schemas.ts'
import { promptTokens } from '../../../core/dialects/prompt-tokens.ts'
import { Failure } from '../../../core/failure.ts'
import type { Model } from '../../../core/models/model.ts'
import { array, boolean, namedObject, nullableString, string } from '../../../core/schemas/fields.ts'
import { isFor } from '../../../core/schemas/task.ts'
import { errorGroups } from '../../http/request/errors.ts'
import type { ClientExchange } from '../../http/request/exchange.ts'
import type { Owners } from '../../http/request/owners.ts'
import { routeOf } from '../../http/request/route.ts'
import { allowedChatModel, modelNotFound, visibleModels } from '../../work/allowed-models.ts'
import { type InferenceOwners, inferenceRouteOf } from '../../work/inference.ts'

/** Renders a failure in Anthropic's form. */
export const anthropicErrors = (failure: Failure, exchange: { id: string }) => ({
  status: anthropicStatus(failure),
  body: anthropicError(failure, exchange.id),
})

/** Makes a route of the Anthropic-compatible API. */
const anthropicRoute = routeOf({
  tag: 'Anthropic',
  errors: anthropicErrors,
  // Anthropic's clients read the id of the request from this header.
  addAnswerHeaders(headers, { id }) {
    headers.push('request-id', id)
  },
})

const ModelInfo = namedObject('AnthropicModel', 'A model in the form of Anthropic.', {
  type: z.literal('model'),
  id: string('Id of the model: the value of `model` in a request.'),
  display_name: string('`description` in `infer.yaml`, else the id.'),
  created_at: string('When the configuration was last read (RFC 3339).'),
})

const ModelPage = namedObject('AnthropicModelList', 'Models that answer chats, in the form of Anthropic.', {
  data: array('The models.', ModelInfo),
  has_more: boolean('Whether there are more in this direction.'),
  first_id: nullableString('Id of the first model; null without one.'),
  last_id: nullableString('Id of the last model; null without one.'),
})

type ModelOwners = Owners<'registry'>

/** Enabled models that answer chats and that the token may use. */
const visible = (exchange: ClientExchange, owners: ModelOwners): Model[] =>
  visibleModels(exchange, owners).filter(({ tasks }) => isFor(tasks, 'chat'))

const infoOf = ({ id, description }: Model, { registry }: ModelOwners) => ({
  type: 'model' as const,
  id,
  display_name: description ?? id,
  created_at: new Date(registry.readAt).toISOString(),
})

const cursor = z.string().max(256).optional()

/** The route that answers conversations in the form of Anthropic. */
export const messageRoute = (owners: InferenceOwners) =>
  inferenceRouteOf(anthropicRoute, owners)('POST /anthropic/v1/messages', {
    dialect: 'anthropic',
    summary: 'Create message',
    description:
      'Answers a conversation, in the form of Anthropic. With `stream: true` the answer is a stream of typed events. `cache_control` has no effect, because engines cache by themselves. Tools that Anthropic runs are left out, and named in `x-infer-ignored`.',
    events: 'AnthropicEvent',
    errorCodes: errorGroups.media,
    body: AnthropicRequest,
    example: { model: 'infer/tiny-chat', max_tokens: 16, messages: [{ role: 'user', content: 'Hello!' }] },
    response: AnthropicMessage,
  })

/** The routes of Anthropic's clients, whose base URL is `/anthropic` of this server. */
export const anthropicRoutes = (owners: InferenceOwners & Owners<'registry'>) => [
  anthropicRoute('GET /anthropic', 'public', {
    summary: 'Check liveness (Anthropic)',
    description: "Answers `ok`. Anthropic's clients ask their base URL whether there is a server.",
    media: ['text/plain'],
    answer: exchange => exchange.send(200, 'ok\n', 'text/plain; charset=utf-8', ['cache-control', 'no-store']),
  }),
  messageRoute(owners),
  anthropicRoute('POST /anthropic/v1/messages/count_tokens', 'user:write', {
    bucket: 'api',
    summary: 'Get token count of message',
    description:
      'Estimates how many tokens a conversation has, without running it: one for each three bytes of text, tools included, and 1000 for each image or file. Most tokenizers need fewer. `usage` of an answer has the exact count.',
    errorCodes: errorGroups.model,
    body: AnthropicCountRequest,
    largeBody: true,
    example: { model: 'infer/tiny-chat', messages: [{ role: 'user', content: 'Hello!' }] },
    response: AnthropicCount,
    handle({ body }, exchange) {
      allowedChatModel(exchange, body.model, owners)
      return { input_tokens: promptTokens(body) }
    },
  }),
  anthropicRoute('GET /anthropic/v1/models', 'user:read', {
    summary: 'List models (Anthropic)',
    description: 'Returns the models that answer chats and that the token may use.',
    query: z.object({
      limit: z.coerce.number().int().min(1).max(1000).default(20).describe('Most models to return. Default: 20.'),
      after_id: cursor.describe('Only models after the one with this id.'),
      before_id: cursor.describe('Only models before the one with this id.'),
    }),
    response: ModelPage,
    handle({ query: { limit, after_id, before_id } }, exchange) {
      const all = visible(exchange, owners)
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
    handle({ params }, exchange) {
      const models = visible(exchange, owners)
      const model = models.find(({ id }) => id === params.id)
      if (model) return infoOf(model, owners)
      throw modelNotFound(params.id, models, '/anthropic/v1/models')
    },
  }),
]
