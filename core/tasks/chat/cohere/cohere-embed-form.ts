import type { z } from 'zod'
import { CohereEmbedRequest } from '../../../schemas/cohere-embed.ts'
import type { ChatForm } from '../chat-form.ts'

type Request = z.output<typeof CohereEmbedRequest>

/** The first version of Cohere's embeddings: the second, but without types its answer is a list of vectors. */
export const cohereEmbedForm: ChatForm<Request> = {
  schema: CohereEmbedRequest,
  isStream: () => false,
  chatBody: request => ({
    ...request,
    ...(request.embedding_types ? {} : { response_type: 'embeddings_floats' as const }),
  }),
  remembered: ({ model }) => ({ model }),
  // The task answers in Cohere's form already.
  answer: (_, answer) => answer,
  stream: () => {
    throw new Error('Embeddings have no stream')
  },
}
