import type { BenchmarkRun } from '../../core/models/benchmark.ts'
import { streamAnswer } from '../chat/ask.ts'
import { chatRequest } from '../chat/conversation.ts'
import { type Client, dataOf } from '../client/client.ts'

/** One request of a benchmark. Times in milliseconds of one clock. */
export interface Sample {
  sentAt: number
  firstAt: number
  endedAt: number
  inputTokens: number
  outputTokens: number
}

/** How large the requests of a benchmark are. */
export interface RequestSize {
  /** Words of the prompt. */
  words: number
  /** Most tokens of the answer. */
  output: number
}

/** Sends one request of this size. */
export type Send = (size: RequestSize, signal: AbortSignal) => Promise<Sample>

/**
 * Computes the figures of requests that were sent at once. The rate of prompts is not known if some of them waited for a
 * slot, because the time to their first token includes the answers of others; vectors have no answers. Pure.
 */
export function runOf(samples: readonly Sample[], slots: number): BenchmarkRun {
  const sum = (of: (sample: Sample) => number) => samples.reduce((total, sample) => total + of(sample), 0)
  const firstAt = samples.map(one => one.firstAt).toSorted((a, b) => a - b)
  const waits = samples.map(one => one.firstAt - one.sentAt).toSorted((a, b) => a - b)
  const readMs = firstAt.at(-1)! - Math.min(...samples.map(one => one.sentAt))
  const writeMs = Math.max(...samples.map(one => one.endedAt)) - firstAt[0]!
  const input = sum(one => one.inputTokens)
  const output = sum(one => one.outputTokens)
  // The first token of each answer is part of the time to it.
  const generated = output - samples.length
  return {
    requests: samples.length,
    input_tokens: input,
    output_tokens: output,
    input_tokens_per_second: (samples.length <= slots || output === 0) && input > 0 ? perSecond(input, readMs) : null,
    output_tokens_per_second: generated > 0 ? perSecond(generated, writeMs) : null,
    time_to_first_token_ms: Math.round(waits[Math.floor((waits.length - 1) / 2)]! * 10) / 10,
  }
}

const perSecond = (tokens: number, ms: number): number => Math.round((tokens / Math.max(ms, 1)) * 10_000) / 10

/** Tokens of a prompt, if the context has room for as many. */
const inputTokens = 512
const largest: RequestSize = { words: 400, output: 128 }
const trialOutput = 16
/** Of a model that takes longer for the first, small request, the requests are smaller, or 16 would take half an hour. */
const slowMs = 10_000
const smaller: RequestSize = { words: 100, output: 32 }

/**
 * Finds the size of the requests with a first one, which also warms the engine up. `context`: most tokens of prompt and
 * answer together, if known. Smaller prompts are tried for as long as the model refuses their length.
 */
export async function fittingSize(send: Send, context: number | null, signal: AbortSignal): Promise<RequestSize> {
  const room = context ?? Number.POSITIVE_INFINITY
  const output = Math.min(largest.output, Math.max(1, Math.floor(room / 4)))
  for (let words = Math.min(largest.words, Math.max(1, Math.floor(room / 4))); ; words = Math.floor(words / 2)) {
    try {
      const {
        sentAt,
        endedAt,
        inputTokens: used,
      } = await send({ words, output: Math.min(output, trialOutput) }, signal)
      const isSlow = endedAt - sentAt > slowMs
      const fitting = Math.max(1, Math.min(words, Math.floor((words * inputTokens) / Math.max(1, used))))
      return isSlow
        ? { words: Math.min(fitting, smaller.words), output: Math.min(output, smaller.output) }
        : { words: fitting, output }
    } catch (thrown) {
      if (words < 8 || (thrown as { code?: unknown }).code !== 'context_length_exceeded') throw thrown
    }
  }
}

/** Sends as many requests at once, and computes their figures. `answered` is called with each answer. */
export async function measureRun(
  send: Send,
  { requests, slots, size }: { requests: number; slots: number; size: RequestSize },
  signal: AbortSignal,
  answered: (count: number) => void,
): Promise<BenchmarkRun> {
  let count = 0
  const failed = new AbortController()
  const either = AbortSignal.any([signal, failed.signal])
  const one = async () => {
    const sample = await send(size, either)
    answered(++count)
    return sample
  }
  try {
    return runOf(await Promise.all(Array.from({ length: requests }, one)), slots)
  } finally {
    // The others are of no use once one has failed.
    failed.abort()
  }
}

const vocabulary =
  'river stone window garden silver morning bridge paper winter candle forest market summer letter engine mountain coffee island mirror harbor'.split(
    ' ',
  )

/** Random words, so that no engine finds the beginning of one prompt in its cache. */
const randomWords = (count: number): string =>
  Array.from({ length: count }, () => vocabulary[Math.floor(Math.random() * vocabulary.length)]).join(' ')

/** Streams an answer of a chat model. */
export function chatSender(client: Client, model: string): Send {
  return async ({ words, output }, signal) => {
    const content = `${randomWords(words)}. Write a long story with all of these words.`
    const body = chatRequest({ model, system: undefined }, [{ role: 'user', content }], {
      temperature: 0,
      maxTokens: output,
    })
    const sentAt = performance.now()
    let firstAt: number | undefined
    let tokens = { input: 0, output: 0 }
    for await (const part of streamAnswer(body, { client, signal })) {
      firstAt ??= performance.now()
      if (part.kind === 'end' && part.tokens) tokens = part.tokens
    }
    const endedAt = performance.now()
    return { sentAt, firstAt: firstAt ?? endedAt, endedAt, inputTokens: tokens.input, outputTokens: tokens.output }
  }
}

/** Sends a text to a model for vectors. */
export function embeddingSender(client: Client, model: string): Send {
  return async ({ words }, signal) => {
    const body = { model, input: randomWords(words) }
    const sentAt = performance.now()
    const answer = await dataOf(client.api.POST('/std/v1/embeddings', { body, signal }))
    const endedAt = performance.now()
    const inputTokens = 'usage' in answer ? answer.usage.prompt_tokens : 0
    return { sentAt, firstAt: endedAt, endedAt, inputTokens, outputTokens: 0 }
  }
}
