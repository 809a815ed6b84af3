import {
  AnthropicCount,
  AnthropicCountRequest,
  AnthropicMessage,
  AnthropicRequest,
} from '../../../core/dialects/anthropic/anthropic-schemas.ts'
import { promptTokens } from '../../../core/tasks/chat/prompt-tokens.ts'
import { errorGroups } from '../../http/request/error-groups.ts'
import type { Owners } from '../../http/request/owners.ts'
import { allowedChatModel } from '../../work/allowed-models.ts'
import { type InferenceOwners, inferAs } from '../../work/inference.ts'
import { anthropicRoute } from './anthropic-route.ts'
import { anthropicModelRoutes } from './models.ts'

/** The routes of Anthropic's clients, whose base URL is `/anthropic` of this server. */
export const anthropicRoutes = (owners: InferenceOwners & Pick<Owners, 'registry'>) => [
  anthropicRoute('POST /anthropic/v1/messages', 'user:write', {
    bucket: 'jobs',
    summary: 'Create message',
    description:
      'Answers a conversation, in the form of Anthropic. With `stream: true` the answer is a stream of typed events. `cache_control` has no effect, because engines cache by themselves. Tools that Anthropic runs are refused by name.',
    events: 'AnthropicEvent',
    errorCodes: [...errorGroups.submit, ...errorGroups.wait, ...errorGroups.media],
    body: AnthropicRequest,
    example: { model: 'infer/tiny-chat', max_tokens: 16, messages: [{ role: 'user', content: 'Hello!' }] },
    response: AnthropicMessage,
    answer: inferAs('anthropic', owners),
  }),
  anthropicRoute('POST /anthropic/v1/messages/count_tokens', 'user:write', {
    bucket: 'api',
    summary: 'Get token count of message',
    description:
      'Estimates how many tokens a conversation has, without running it: one for each three bytes of text, tools included, and 1000 for each image or file. Most tokenizers need fewer. `usage` of an answer has the exact count.',
    errorCodes: ['model_not_found', 'unsupported_task', 'model_not_allowed'],
    body: AnthropicCountRequest,
    largeBody: true,
    example: { model: 'infer/tiny-chat', messages: [{ role: 'user', content: 'Hello!' }] },
    response: AnthropicCount,
    handle({ body }, call) {
      allowedChatModel(call, body.model, owners)
      return { input_tokens: promptTokens(body) }
    },
  }),
  ...anthropicModelRoutes(owners),
]
