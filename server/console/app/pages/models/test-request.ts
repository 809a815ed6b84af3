import type { Schema } from '../../api/schema.ts'
import { modelsText } from '../../text/models.ts'

/** A short request that shows whether a model works. */
export interface TestRequest {
  path: string
  body: object
  /** Reads the answer as a sentence; null if the answer is audio. */
  read: ((answer: never) => string) | null
}

/** A short job, for tasks that take longer than a request: its result is shown as such. */
export interface TestJob {
  task: Task
  inputs: Record<string, unknown>
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

const { testImage: image } = modelsText
const jobs: Partial<Record<Task, Record<string, unknown>>> = {
  'slug/text-to-image': { prompt: image, width: 512, height: 512, preset: 'fast_draft' },
  'std/image-generation': { prompt: image, size: '512x512' },
  'slug/text-to-video': { prompt: image, preset: 'fast_draft' },
  'std/audio-transcription': { url: silence() },
  'std/audio-translation': { url: silence() },
}

/** A second of nothing as a WAV file: eight bits, 8 kHz. */
function silence(): string {
  const rate = 8_000
  const bytes = new Uint8Array(44 + rate).fill(128)
  const view = new DataView(bytes.buffer)
  const write = (at: number, text: string) => bytes.set(new TextEncoder().encode(text), at)
  write(0, 'RIFF')
  view.setUint32(4, 36 + rate, true)
  write(8, 'WAVEfmt ')
  for (const [at, value] of [
    [16, 16],
    [24, rate],
    [28, rate],
    [40, rate],
  ] as const)
    view.setUint32(at, value, true)
  for (const [at, value] of [
    [20, 1],
    [22, 1],
    [32, 1],
    [34, 8],
  ] as const)
    view.setUint16(at, value, true)
  write(36, 'data')
  return `data:audio/wav;base64,${btoa(String.fromCharCode(...bytes))}`
}

/** Returns the request or job for the first task that has a short one; undefined for models that need a file. */
export function testRequest({
  model_id: model,
  tasks,
}: Pick<Schema<'ModelStatus'>, 'model_id' | 'tasks'>): TestRequest | TestJob | undefined {
  const request = tasks.map(task => requests[task]).find(one => one !== undefined)
  if (request) return { ...request, body: { model, ...request.body } }
  const task = tasks.find(one => jobs[one] !== undefined)
  return task && { task, inputs: jobs[task]! }
}
