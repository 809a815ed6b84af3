import type { Schema } from '../../api/schema.ts'
import { modelsText } from '../../text/models.ts'

/** A short request that shows whether a model works. */
export interface TestRequest {
  path: string
  body: object
  /** Reads the answer as a sentence; null if the answer is audio. */
  read: ((answer: never) => string) | null
}

type Task = Schema<'Task'>
const { testPrompt: prompt, testTexts: texts } = modelsText
const number = new Intl.NumberFormat('en', { maximumFractionDigits: 3 })
const textOf = (text: string | null | undefined): string => text?.trim() || modelsText.emptyAnswer

const requests: Partial<Record<Task, Omit<TestRequest, 'body'> & { body: object }>> = {
  'std/chat-completion': {
    path: '/std/v1/chat/completions',
    body: { messages: [{ role: 'user', content: prompt }], max_tokens: 64 },
    read: ({ choices }: { choices: { message: { content: string | null } }[] }) => textOf(choices[0]?.message.content),
  },
  'std/completion': {
    path: '/std/v1/completions',
    body: { prompt, max_tokens: 32 },
    read: ({ choices }: { choices: { text: string }[] }) => textOf(choices[0]?.text),
  },
  'std/embeddings': {
    path: '/std/v1/embeddings',
    body: { input: texts[0], encoding_format: 'float' },
    read: ({ data }: { data: { embedding: number[] }[] }) => modelsText.numbers(data[0]?.embedding.length ?? 0),
  },
  'std/rerank': {
    path: '/std/v1/rerank',
    body: { query: 'cat', documents: texts },
    read: ({ results }: { results: { index: number; relevance_score: number }[] }) =>
      modelsText.best(texts[results[0]?.index ?? 0]!, number.format(results[0]?.relevance_score ?? 0)),
  },
  'std/score': {
    path: '/std/v1/score',
    body: { text_1: texts[0], text_2: texts[1] },
    read: ({ data }: { data: { score: number }[] }) => modelsText.score(number.format(data[0]?.score ?? 0)),
  },
  'std/moderation': {
    path: '/std/v1/moderations',
    body: { input: texts[0] },
    read: ({ results }: { results: { flagged: boolean }[] }) => modelsText.flagged(results[0]?.flagged ?? false),
  },
  'std/audio-speech': { path: '/std/v1/audio/speech', body: { input: prompt, response_format: 'wav' }, read: null },
}

/** Returns the request for the first task that has a short one; undefined for models of images and videos. */
export function testRequest({ model_id: model, tasks }: Pick<Schema<'ModelStatus'>, 'model_id' | 'tasks'>) {
  const request = tasks.map(task => requests[task]).find(one => one !== undefined)
  return request && { ...request, body: { model, ...request.body } }
}
