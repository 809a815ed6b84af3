import { ChatRequest, ChatResponse } from '../../core/schemas/chat.ts'
import { CompletionRequest, CompletionResponse } from '../../core/schemas/completion.ts'
import {
  EmbeddingsRequest,
  EmbeddingsResponse,
  RerankRequest,
  RerankResponse,
  ScoreRequest,
  ScoreResponse,
} from '../../core/schemas/vectors.ts'
import { route } from '../route.ts'
import { type InferenceOwners, infer } from './inference.ts'

const tag = 'Text'
const scope = 'user:write'
const bucket = 'jobs'
const method = 'POST'

/** The OpenAI-compatible routes for text. They differ in their schemas only. */
export const textRoutes = (owners: InferenceOwners) => [
  route({
    method,
    path: '/std/v1/chat/completions',
    scope,
    bucket,
    tag,
    summary: 'Answer a conversation',
    description: 'With `stream: true` the answer comes as server-sent events that end with `data: [DONE]`.',
    body: ChatRequest,
    example: { model: 'infer/tiny-chat', messages: [{ role: 'user', content: 'Hello!' }] },
    response: ChatResponse,
    answer: infer('std/chat-completion', owners),
  }),
  route({
    method,
    path: '/std/v1/completions',
    scope,
    bucket,
    tag,
    summary: 'Continue a text',
    description:
      'The older form of inference: no roles and no template, the model goes on where the prompt ends. With `stream: true` the answer comes as server-sent events that end with `data: [DONE]`.',
    body: CompletionRequest,
    example: { model: 'infer/tiny-chat', prompt: 'Once upon a time', max_tokens: 16 },
    response: CompletionResponse,
    answer: infer('std/completion', owners),
  }),
  route({
    method,
    path: '/std/v1/embeddings',
    scope,
    bucket,
    tag,
    summary: 'Turn texts into vectors',
    body: EmbeddingsRequest,
    example: { model: 'infer/tiny-embed', input: ['A cat sat on the mat.', 'The dog barked.'] },
    response: EmbeddingsResponse,
    answer: infer('std/embeddings', owners),
  }),
  route({
    method,
    path: '/std/v1/rerank',
    aliases: ['/std/v2/rerank', '/v2/rerank', '/std/v1/reranking', '/v1/reranking', '/rerank'],
    scope,
    bucket,
    tag,
    summary: 'Order documents by relevance to a query',
    description:
      'The ranking stands under `data` (Voyage) and under `results` (Cohere, Jina); scores are probabilities unless `raw_scores` is set.',
    body: RerankRequest,
    example: {
      model: 'infer/tiny-rerank',
      query: 'Who sat on the mat?',
      documents: ['The dog barked.', 'A cat sat on the mat.'],
      return_documents: true,
    },
    response: RerankResponse,
    answer: infer('std/rerank', owners),
  }),
  route({
    method,
    path: '/std/v1/score',
    aliases: ['/score'],
    scope,
    bucket,
    tag,
    summary: 'Score pairs of texts',
    description:
      'A pair comes as `text_1` and `text_2`, `queries` and `documents`, or `data_1` and `data_2`; each a text or a list.',
    body: ScoreRequest,
    example: {
      model: 'infer/tiny-rerank',
      text_1: 'Who sat on the mat?',
      text_2: ['The dog barked.', 'A cat sat on the mat.'],
    },
    response: ScoreResponse,
    answer: infer('std/score', owners),
  }),
]
