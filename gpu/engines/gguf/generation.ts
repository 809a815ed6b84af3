import type { Token } from 'node-llama-cpp'
import { Failure } from '../../../core/failure.ts'
import { type Generator, openGenerator } from './generate.ts'
import { attempt, type LoadedModel } from './model.ts'
import type { Exclusive } from './mutex.ts'
import { openNative } from './native.ts'
import type { GgufEngineOptions } from './options.ts'
import { openRounds } from './rounds.ts'
import { samplingOf } from './sampling.ts'
import { openSlots } from './slots.ts'
import type { Vocabulary } from './vocabulary.ts'

/** Requests that may wait for a free slot before more are refused. */
const queue = 1024

export interface Generation {
  generator: Generator
  /** Tokens of one request, prompt and answer together. */
  context: number
  /** Answers at once. */
  parallel: number
  /** Resolves when nothing is being computed any more; all requests must have ended. */
  idle(): Promise<void>
}

/** Makes the memory for conversations and computes one token. Throws Failure `worker_error` when the model cannot. */
export async function openGeneration(
  { llama, model, sizing }: LoadedModel,
  { threads, gpu }: GgufEngineOptions,
  vocabulary: Vocabulary,
  exclusive: Exclusive,
): Promise<Generation> {
  // llama.cpp does not refuse these: it draws tokens from memory that nobody has written.
  if (model.fileInfo.architectureMetadata.attention?.causal === false || !model.fileInsights.hasDecoder)
    throw new Failure('worker_error', 'The model cannot chat: it reads texts but does not continue them.')
  const { context, parallel } = sizing
  // A processor gains nothing from longer pieces, and everyone else waits for them; a GPU wants them long.
  const piece = gpu === 'off' || llama.gpu === false ? 128 : 512
  const batchSize = Math.max(sizing.batch, parallel)
  const memory = await attempt('The model cannot chat', () =>
    model.createContext({ contextSize: context, sequences: parallel, threads, batchSize, failedCreationRemedy: false }),
  )
  const native = openNative(llama, model, memory)
  const rounds = openRounds({ native, batchSize, piece, window: model.fileInsights.swaSize ?? 0, exclusive })
  const slots = openSlots({ count: parallel, queue, worth: minCopyTokens(context) })
  const generator = openGenerator({ native, model, vocabulary, slots, rounds, context })
  const prompt = [model.tokens.bos ?? model.tokens.eos ?? (0 as Token)]
  const { signal } = new AbortController()
  const trial = { prompt, sampling: samplingOf({ temperature: 0 }, vocabulary.size, 0), limit: 1, stops: [], signal }
  await attempt('The model cannot chat', () => generator.generate(trial, () => {}))
  return { generator, context, parallel, idle: rounds.idle }
}

/**
 * From how many tokens on it is worth copying them from another slot. A copy moves the memory of a whole slot,
 * whatever it holds; to compute one token takes as long as to move that of several hundred.
 */
export const minCopyTokens = (context: number): number => Math.max(16, Math.ceil(context / 256))
