import { ChatRequest, ChatResponse } from '../../../core/schemas/chat.ts'
import { CompletionRequest, CompletionResponse } from '../../../core/schemas/completion.ts'
import { ModerationRequest, ModerationResponse } from '../../../core/schemas/moderation.ts'
import {
  EmbeddingsRequest,
  EmbeddingsResponse,
  RerankRequest,
  RerankResponse,
  ScoreRequest,
  ScoreResponse,
} from '../../../core/schemas/vectors.ts'
import { errorGroups } from '../../http/request/errors.ts'
import { routeOf } from '../../http/request/route.ts'
import { respondAsync } from '../../views/job-record.ts'
import { type InferenceOwners, inferenceRouteOf } from '../../work/inference.ts'

const route = routeOf({ tag: 'Text' })
/** Returns the function that makes the routes of this file. */
const textRouteOf = (owners: InferenceOwners) => inferenceRouteOf(route, owners, respondAsync)

const streamed = 'With `stream: true` the answer is a stream of server-sent events that ends with `data: [DONE]`.'

/** The OpenAI-compatible routes for text. They differ in their schemas only. */
export const textRoutes = (owners: InferenceOwners, inferenceRoute = textRouteOf(owners)) => [
  inferenceRoute('POST /std/v1/chat/completions', {
    task: 'std/chat-completion',
    summary: 'Create chat completion',
    description: `Answers a conversation. ${streamed}`,
    events: 'ChatCompletionChunk',
    errorCodes: errorGroups.media,
    body: ChatRequest,
    example: { model: 'infer/tiny-chat', messages: [{ role: 'user', content: 'Hello!' }] },
    response: ChatResponse,
  }),
  inferenceRoute('POST /std/v1/completions', {
    task: 'std/completion',
    summary: 'Create completion',
    description: `Continues a text. There are no roles and no chat template: the model continues where the prompt ends. ${streamed}`,
    events: 'CompletionChunk',
    body: CompletionRequest,
    example: { model: 'infer/tiny-chat', prompt: 'Once upon a time', max_tokens: 16 },
    response: CompletionResponse,
  }),
  inferenceRoute('POST /std/v1/embeddings', {
    task: 'std/embeddings',
    summary: 'Create embeddings',
    description: 'Turns texts into vectors. Texts of similar meaning have vectors of similar direction.',
    body: EmbeddingsRequest,
    example: { model: 'infer/tiny-embed', input: ['A cat sat on the mat.', 'The dog barked.'] },
    response: EmbeddingsResponse,
  }),
]

/** The routes that score texts, by their relevance to others or by the harm in them. */
export const scoringRoutes = (owners: InferenceOwners, inferenceRoute = textRouteOf(owners)) => [
  inferenceRoute('POST /std/v1/rerank', {
    task: 'std/rerank',
    aliases: ['/std/v2/rerank', '/v2/rerank', '/std/v1/reranking', '/v1/reranking', '/rerank'],
    summary: 'Rerank documents',
    description:
      'Orders documents by relevance to a query. The ranking is in `data` (form of Voyage) and in `results` (form of Cohere and Jina). Scores are probabilities unless `raw_scores` is true.',
    body: RerankRequest,
    example: {
      model: 'infer/tiny-rerank',
      query: 'Who sat on the mat?',
      documents: ['The dog barked.', 'A cat sat on the mat.'],
      return_documents: true,
    },
    response: RerankResponse,
  }),
  inferenceRoute('POST /std/v1/score', {
    task: 'std/score',
    aliases: ['/score'],
    summary: 'Score text pairs',
    description:
      'Scores how similar or relevant texts are to each other. Send a pair as `text_1` and `text_2`, `queries` and `documents`, or `data_1` and `data_2`; each a text or a list.',
    body: ScoreRequest,
    example: {
      model: 'infer/tiny-rerank',
      text_1: 'Who sat on the mat?',
      text_2: ['The dog barked.', 'A cat sat on the mat.'],
    },
    response: ScoreResponse,
  }),
  inferenceRoute('POST /std/v1/moderations', {
    task: 'std/moderation',
    summary: 'Create moderation',
    description:
      'Judges texts and images by the categories of harm of OpenAI. The model is one to which the operator has given the task `std/moderation`: a classifier, or a chat model that answers with a score for each category. `model` in the answer names it.',
    errorCodes: errorGroups.media,
    body: ModerationRequest,
    example: { model: 'infer/tiny-chat', input: 'I like apples.' },
    response: ModerationResponse,
  }),
]
