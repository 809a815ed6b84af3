import { CohereChatRequest, CohereChatResponse } from '../../../core/dialects/cohere/cohere-chat-schemas.ts'
import { CohereEmbedRequest, CohereEmbedResponse } from '../../../core/dialects/cohere/cohere-embed.ts'
import { errorGroups } from '../../http/request/error-groups.ts'
import { route } from '../../http/request/route.ts'
import { respondAsync } from '../../views/job-created.ts'
import { type InferenceOwners, infer, inferAs } from '../../work/inference.ts'
import { cohereErrors } from './errors.ts'

const facts = {
  method: 'POST',
  scope: 'user:write',
  bucket: 'jobs',
  tag: 'Text',
  otherAnswers: respondAsync,
} as const
const codes = [...errorGroups.submit, ...errorGroups.wait] as const

/** The Cohere-compatible routes. */
export const cohereRoutes = (owners: InferenceOwners) => [
  route({
    path: '/std/v2/chat',
    aliases: ['/v2/chat'],
    ...facts,
    otherAnswers: {},
    summary: 'Create chat (Cohere)',
    description:
      'Answers a conversation, in the form of Cohere. Documents become part of the system message; engines do not cite them. With `stream: true` the answer is a stream of typed events.',
    events: 'CohereChatEvent',
    errorCodes: [...codes, ...errorGroups.media],
    errors: cohereErrors,
    body: CohereChatRequest,
    example: { model: 'infer/tiny-chat', messages: [{ role: 'user', content: 'Hello!' }], max_tokens: 16 },
    response: CohereChatResponse,
    answer: inferAs('cohere', owners),
  }),
  route({
    path: '/std/v2/embed',
    aliases: ['/v2/embed'],
    ...facts,
    summary: 'Create embeddings (Cohere)',
    description: 'Turns texts into vectors, in the form of Cohere: one list of vectors for each requested type.',
    errorCodes: codes,
    errors: cohereErrors,
    body: CohereEmbedRequest,
    example: { model: 'infer/tiny-embed', texts: ['A cat sat on the mat.'], embedding_types: ['float', 'ubinary'] },
    response: CohereEmbedResponse,
    answer: infer('std/embeddings', owners),
  }),
  route({
    path: '/std/v1/embed',
    ...facts,
    summary: 'Create embeddings (Cohere version 1)',
    description:
      'The same in the first version of the API: without `embedding_types` the answer is one list of vectors.',
    errorCodes: codes,
    errors: cohereErrors,
    body: CohereEmbedRequest,
    example: { model: 'infer/tiny-embed', texts: ['A cat sat on the mat.'], input_type: 'search_document' },
    response: CohereEmbedResponse,
    answer: inferAs('cohere-embed', owners, { task: 'std/embeddings' }),
  }),
]
