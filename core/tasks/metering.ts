import type { PricedImage } from '../models/price.ts'
import { type Measure, noUsage, type Usage } from '../usage.ts'

/** What is known of a request before it runs. */
export interface EstimateInput {
  /** Its fields, which are checked elsewhere: a value of a wrong type counts as absent. */
  inputs: Readonly<Record<string, unknown>>
  /** Characters of its JSON text. */
  length: number
  /** The most tokens of a request and its answer together; null if unknown. */
  contextLength: number | null
  /** Bytes of its audio file, if it has one. */
  audioBytes?: number
}

/** The most that a request can use, and what its images are. */
export interface Estimate {
  usage: Usage
  image?: PricedImage | undefined
}

/** What a task measures, and how much of it a request can use. */
export interface Metering {
  /** The measures that its usage has besides GPU time and energy, which every run has. */
  measures: readonly Measure[]
  /** Returns an upper estimate, which is held until the actual usage is known. */
  estimate(asked: EstimateInput): Estimate
  /** Returns the work of a job with these stored inputs, comparable among jobs of one model; null if they do not tell. */
  work(inputs: string | null): number | null
}

/** GPU time is known only afterwards: ten minutes are held for it. */
export const expectedGpuMs = 600_000
/** Tokens of an answer without a limit, of a model whose context length is not known. */
const defaultContext = 32_768
/** No engine writes more tokens for one request, whatever its fields say: estimates stay numbers that can be added up. */
const maxAnswerTokens = 1_000_000_000
/** Speech as slow as a request can ask for. */
const longestMsPerCharacter = 400
/** A second of speech has at least a kilobyte, however it is compressed. */
const bytesPerAudioSecond = 1_000

const noWork = () => 1
const countOf = (value: unknown, otherwise: number): number =>
  typeof value === 'number' && Number.isFinite(value) && value > 0 ? Math.ceil(value) : otherwise
const lengthOf = (value: unknown): number => (Array.isArray(value) ? value.length : 1)
const estimated = (usage: Usage, image?: PricedImage): Estimate => ({
  usage: { ...usage, gpuMs: expectedGpuMs },
  image,
})

/** A token has at least one character, and an input that is longer than the context is refused. */
const inputTokens = ({ length, contextLength }: EstimateInput): number => Math.min(length, contextLength ?? length)

function answerTokens({ inputs, contextLength }: EstimateInput): number {
  const { max_completion_tokens, max_tokens, n, best_of, prompt } = inputs
  const limit = countOf(max_completion_tokens, countOf(max_tokens, contextLength ?? defaultContext))
  const each = Math.min(limit, contextLength ?? limit)
  const prompts = Array.isArray(prompt) && typeof prompt[0] !== 'number' ? prompt.length : 1
  return Math.min(each * Math.max(countOf(n, 1), countOf(best_of, 1)) * Math.max(1, prompts), maxAnswerTokens)
}

/** Meters nothing: work without a model is free. */
export const noMetering: Metering = { measures: [], estimate: () => ({ usage: noUsage }), work: noWork }

/** Meters text in tokens, as the engine counts them. All jobs count as equal work. */
export const textMetering: Metering = {
  measures: ['inputTokens', 'cachedTokens', 'outputTokens', 'reasoningTokens'],
  estimate: asked => estimated({ inputTokens: inputTokens(asked), outputTokens: answerTokens(asked) }),
  work: noWork,
}

/** Meters the tokens of texts that are turned into vectors. */
export const vectorMetering: Metering = {
  measures: ['inputTokens'],
  estimate: ({ length }) => estimated({ inputTokens: length, outputTokens: 0 }),
  work: noWork,
}

/** Meters documents that are ranked, and the tokens that the engine reports. */
export const rerankMetering: Metering = {
  measures: ['inputTokens', 'documents'],
  estimate: ({ inputs, length }) =>
    estimated({ inputTokens: length, outputTokens: 0, documents: lengthOf(inputs.documents) }),
  work: noWork,
}

/** Meters pairs that are scored, as documents, and the tokens that the engine reports. */
export const scoreMetering: Metering = {
  measures: ['inputTokens', 'documents'],
  estimate: ({ inputs, length }) => estimated({ inputTokens: length, outputTokens: 0, documents: pairsOf(inputs) }),
  work: noWork,
}

/** One text is paired with each text of the other list; two lists are paired one by one. */
const pairsOf = ({ text_1, text_2, queries, documents, items, data_1, data_2 }: EstimateInput['inputs']): number =>
  Math.max(...[text_1, text_2, queries, documents, items, data_1, data_2].map(lengthOf))

/** Meters characters that are turned into audio, and its length. */
export const speechMetering: Metering = {
  measures: ['characters', 'audioMs'],
  estimate({ inputs }) {
    const characters = typeof inputs.input === 'string' ? inputs.input.length : 0
    return estimated({ inputTokens: 0, outputTokens: 0, characters, audioMs: characters * longestMsPerCharacter })
  },
  work: noWork,
}

/** Meters the length of audio that is transcribed, and the tokens that the engine reports. */
export const transcriptionMetering: Metering = {
  measures: ['audioMs', 'inputTokens', 'outputTokens'],
  estimate({ audioBytes = 0 }) {
    const audioMs = Math.ceil((audioBytes / bytesPerAudioSecond) * 1000)
    return estimated({ inputTokens: 0, outputTokens: 0, audioMs })
  },
  work: noWork,
}
