import { CohereChatRequest, CohereChatResponse } from '../../../core/dialects/cohere/cohere-chat-schemas.ts'
import { CohereEmbedRequest, CohereEmbedResponse } from '../../../core/dialects/cohere/cohere-embed.ts'
import type { Failure } from '../../../core/failure.ts'
import { errorBody, errorGroups } from '../../http/request/errors.ts'
import { routeOf } from '../../http/request/route.ts'
import { respondAsync } from '../../views/job-record.ts'
import { type InferenceOwners, inferenceRouteOf } from '../../work/inference.ts'

/** Returns an error with the `message` and `id` that Cohere's clients read, besides the common format. */
export const cohereErrors = (failure: Failure, exchange: { id: string }) => ({
  status: failure.status,
  body: { message: failure.message, id: exchange.id, ...errorBody(failure, exchange.id) },
})

const route = routeOf({ tag: 'Text', errors: cohereErrors })

export const cohereRoutes = (
  owners: InferenceOwners,
  inferenceRoute = inferenceRouteOf(route, owners, respondAsync),
) => [
  inferenceRoute('POST /std/v2/chat', {
    dialect: 'cohere',
    aliases: ['/v2/chat'],
    otherAnswers: {},
    summary: 'Create chat (Cohere)',
    description:
      'Answers a conversation, in the form of Cohere. Documents become part of the system message; engines do not cite them. With `stream: true` the answer is a stream of typed events.',
    events: 'CohereChatEvent',
    errorCodes: errorGroups.media,
    body: CohereChatRequest,
    example: { model: 'infer/tiny-chat', messages: [{ role: 'user', content: 'Hello!' }], max_tokens: 16 },
    response: CohereChatResponse,
  }),
  inferenceRoute('POST /std/v2/embed', {
    task: 'std/embeddings',
    aliases: ['/v2/embed'],
    summary: 'Create embeddings (Cohere)',
    description: 'Turns texts into vectors, in the form of Cohere: one list of vectors for each requested type.',
    body: CohereEmbedRequest,
    example: { model: 'infer/tiny-embed', texts: ['A cat sat on the mat.'], embedding_types: ['float', 'ubinary'] },
    response: CohereEmbedResponse,
  }),
  inferenceRoute('POST /std/v1/embed', {
    dialect: 'cohere-embed',
    task: 'std/embeddings',
    summary: 'Create embeddings (Cohere version 1)',
    description:
      'The same in the first version of the API: without `embedding_types` the answer is one list of vectors.',
    body: CohereEmbedRequest,
    example: { model: 'infer/tiny-embed', texts: ['A cat sat on the mat.'], input_type: 'search_document' },
    response: CohereEmbedResponse,
  }),
]
