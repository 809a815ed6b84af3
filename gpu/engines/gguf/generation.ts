import { Failure } from '../../../core/failure.ts'
import type { Log } from '../../../core/log.ts'
import { loadAdapters } from './adapters.ts'
import { openGenerator } from './generate.ts'
import { openGuessLength } from './guess-length.ts'
import { attemptNative, firstToken, type LoadedModel } from './model.ts'
import type { Exclusive } from './mutex.ts'
import { openNative } from './native.ts'
import type { GgufEngineOptions } from './options.ts'
import { openRounds } from './rounds.ts'
import { samplingOf } from './sampling.ts'
import { openSavedStates, type SaveLimits } from './saved-states.ts'
import { openSlots } from './slots.ts'
import type { Vocabulary } from './vocabulary.ts'

/** Requests that may wait for a free slot before more are refused. */
const queue = 1024

/** Creates the context for conversations and computes a test token. Throws Failure `worker_error` if that fails. */
export async function openGeneration(
  { llama, model, sizing }: LoadedModel,
  { id, threads, gpu, conversations, guess, adapters = [] }: GgufEngineOptions,
  vocabulary: Vocabulary,
  exclusive: Exclusive,
  log: Log,
) {
  // llama.cpp does not refuse these models: it would sample from uninitialized memory.
  if (model.fileInfo.architectureMetadata.attention?.causal === false || !model.fileInsights.hasDecoder)
    throw new Failure('worker_error', 'The model cannot chat: it is an encoder and does not generate text.')
  const { context, parallel } = sizing
  // On a CPU longer pieces are not faster and delay the other streams; a GPU needs long ones.
  const piece = gpu === 'off' || llama.gpu === false ? 128 : 512
  const batchSize = Math.max(sizing.batch, parallel)
  const memory = await attemptNative('The model cannot chat', () =>
    model.createContext({ contextSize: context, sequences: parallel, threads, batchSize, failedCreationRemedy: false }),
  )
  const native = openNative(llama, model, memory)
  const adapterOf = await loadAdapters(native, id, adapters, log)
  const { gpuLayers, kvType, flashAttention, need } = sizing
  const saved =
    conversations === undefined
      ? undefined
      : openSavedStates({
          folder: conversations,
          context: native.context,
          contextSize: context,
          settings: [llama.llamaCppRelease.release, llama.gpu, gpuLayers, kvType, flashAttention, parallel, piece],
          tokenBytes: need.cache / context / parallel,
          exclusive,
          log,
        })
  const window = model.fileInsights.swaSize ?? 0
  const forgets = window === 0 && !model.fileInsights.isRecurrent && !model.fileInsights.isHybrid
  if (guess && !forgets)
    log.warn('No tokens are guessed: the memory of this model cannot forget a wrong guess', { model: id })
  const guessLength = guess && forgets ? openGuessLength(guess) : undefined
  const rounds = openRounds({
    native,
    batchSize,
    piece,
    window,
    exclusive,
    restore: saved && ((...load) => saved.restore(...load)),
    guessLength,
  })
  const slots = openSlots({ count: parallel, queue, worth: minCopyTokens(context) })
  const generator = openGenerator({ native, model, vocabulary, slots, rounds, context, guessLength })
  const { signal } = new AbortController()
  const trial = {
    prompt: [firstToken(model)],
    sampling: samplingOf({ temperature: 0 }, vocabulary.size, 0),
    limit: 1,
    stops: [],
    signal,
  }
  await attemptNative('The model cannot chat', () => generator.generate(trial, () => {}))
  return {
    generator,
    adapterOf,
    /** Tokens of one request, prompt and answer together. */
    context,
    parallel,
    /** Saved conversations; absent where none are saved. */
    conversations: saved && {
      pending: () => saved.pending(slots.all),
      save: (limits: SaveLimits) => saved.save(slots.all, limits, work => rounds.whileFree(work)),
    },
    /** Resolves when no computation is running; all requests must have ended before. */
    idle: () => rounds.idle(),
  }
}

/**
 * Minimum number of common tokens for copying them from another slot. A copy moves the memory of the whole slot;
 * computing one token takes as long as moving several hundred.
 */
const minCopyTokens = (context: number): number => Math.max(16, Math.ceil(context / 256))
