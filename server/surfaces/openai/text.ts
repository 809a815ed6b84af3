import { ChatRequest, ChatResponse } from '../../../core/schemas/chat.ts'
import { CompletionRequest, CompletionResponse } from '../../../core/schemas/completion.ts'
import { EmbeddingsRequest, EmbeddingsResponse } from '../../../core/schemas/vectors.ts'
import { route } from '../../http/request/route.ts'
import { errorGroups } from '../../http/request/route-errors.ts'
import { respondAsync } from '../../views/job-created.ts'
import { type InferenceOwners, infer } from '../../work/inference.ts'

const facts = {
  method: 'POST',
  scope: 'user:write',
  bucket: 'jobs',
  tag: 'Text',
  otherAnswers: respondAsync,
} as const
const codes = [...errorGroups.submit, ...errorGroups.wait] as const
const streamed = 'With `stream: true` the answer is a stream of server-sent events that ends with `data: [DONE]`.'

/** The OpenAI-compatible routes for text. They differ in their schemas only. */
export const textRoutes = (owners: InferenceOwners) => [
  route({
    path: '/std/v1/chat/completions',
    ...facts,
    summary: 'Create chat completion',
    description: `Answers a conversation. ${streamed}`,
    events: 'ChatCompletionChunk',
    errorCodes: [...codes, ...errorGroups.media],
    body: ChatRequest,
    example: { model: 'infer/tiny-chat', messages: [{ role: 'user', content: 'Hello!' }] },
    response: ChatResponse,
    answer: infer('std/chat-completion', owners),
  }),
  route({
    path: '/std/v1/completions',
    ...facts,
    summary: 'Create completion',
    description: `Continues a text. There are no roles and no chat template: the model continues where the prompt ends. ${streamed}`,
    events: 'CompletionChunk',
    errorCodes: codes,
    body: CompletionRequest,
    example: { model: 'infer/tiny-chat', prompt: 'Once upon a time', max_tokens: 16 },
    response: CompletionResponse,
    answer: infer('std/completion', owners),
  }),
  route({
    path: '/std/v1/embeddings',
    ...facts,
    summary: 'Create embeddings',
    description: 'Turns texts into vectors. Texts of similar meaning have vectors of similar direction.',
    errorCodes: codes,
    body: EmbeddingsRequest,
    example: { model: 'infer/tiny-embed', input: ['A cat sat on the mat.', 'The dog barked.'] },
    response: EmbeddingsResponse,
    answer: infer('std/embeddings', owners),
  }),
]
