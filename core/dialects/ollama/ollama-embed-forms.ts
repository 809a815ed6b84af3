import type { z } from 'zod'
import type { EmbeddingsResponse } from '../../schemas/vectors.ts'
import type { ChatAnswerFacts, ChatForm } from '../chat-form.ts'
import { noStream } from '../chat-terms.ts'
import { nanoseconds } from './ollama-answer.ts'
import { modelOf } from './ollama-body.ts'
import { OllamaEmbeddingsRequest, OllamaEmbedRequest } from './ollama-schemas.ts'

type Vectors = z.output<typeof EmbeddingsResponse>

/** Embeddings are requested and answered by the same means as chats, with the body and the answer of their own task. */
const vectorsOf = (answer: unknown): number[][] =>
  (answer as Vectors).data.map(({ embedding }) => embedding as number[])

const durations = ({ createdAt, queuedMs }: ChatAnswerFacts, now: number) => ({
  total_duration: nanoseconds(now - createdAt),
  load_duration: nanoseconds(queuedMs),
})

/** Ollama's `/api/embed`. `now`: epoch milliseconds, from which durations are counted. */
export const ollamaEmbedForm = (now: () => number = Date.now): ChatForm<z.output<typeof OllamaEmbedRequest>> => ({
  schema: OllamaEmbedRequest,
  isStream: () => false,
  chatBody: ({ model, input, dimensions, truncate }) => ({
    model: modelOf(model),
    input,
    dimensions,
    truncate_prompt_tokens: truncate === false ? undefined : -1,
  }),
  remembered: ({ model }) => ({ model, input: '' }),
  answer: ({ model }, answer, facts) => ({
    model,
    embeddings: vectorsOf(answer),
    ...durations(facts, now()),
    prompt_eval_count: answer.usage.prompt_tokens,
  }),
  stream: noStream,
})

/** Ollama's older `/api/embeddings`: one text, one vector. */
export const ollamaEmbeddingsForm: ChatForm<z.output<typeof OllamaEmbeddingsRequest>> = {
  schema: OllamaEmbeddingsRequest,
  isStream: () => false,
  chatBody: ({ model, prompt }) => ({ model: modelOf(model), input: prompt, truncate_prompt_tokens: -1 }),
  remembered: ({ model }) => ({ model, prompt: '' }),
  answer: (_, answer) => ({ embedding: vectorsOf(answer)[0] }),
  stream: noStream,
}
