import type { Llama, LlamaContext, LlamaModel } from 'node-llama-cpp'
import { Failure } from '../../../core/failure.ts'

/**
 * Types for node-llama-cpp's native addon, which its published types leave out. Its `evaluate()` returns no logits
 * with a grammar or sampling, ignores a bias on end tokens, cannot share a prompt's memory between answers, and spends
 * as much time on locks and promises as a small model spends on computing (without it 1.4 to 1.8 times the tokens per
 * second, measured). The package version is pinned; the engine checks these functions at start, and tests use tiny
 * models.
 */
export interface NativeContext {
  /** Allocates a batch for this many tokens and discards the previous one. */
  initBatch(tokens: number): void
  /** Adds tokens of a sequence from a position on. Returns the logits indices of the tokens in `logitsOf`. */
  addToBatch(sequence: number, position: number, tokens: Uint32Array, logitsOf: Uint32Array): Uint32Array
  decodeBatch(): Promise<void>
  /** Samples from the logits and updates the sampler; −1 if no token can be sampled. */
  sampleToken(at: number, sampler: NativeSampler): Promise<number>
  /**
   * Also returns logits of the given tokens and of the `top` most likely, as token, logit, token, logit…, and the sum
   * of e^(logit − largest logit) over all tokens.
   */
  sampleToken(
    at: number,
    sampler: NativeSampler,
    probabilities: false,
    confidence: false,
    logits: [tokens: readonly number[], max: false, min: false, selected: false, top: number],
    weight: true,
  ): Promise<[token: number, probabilities: undefined, confidence: undefined, logits: number[], weight: number]>
  disposeSequence(sequence: number): void
  /** Removes positions from `start` up to but excluding `end` (−1: all). False if this memory cannot remove a part. */
  removeTokenCellsFromSequence(sequence: number, start: number, end: number): boolean
  /** The first position still in memory; above 0 for models with a sliding window. */
  getSequenceKvCacheMinPosition(sequence: number): number
  /** Replaces the memory of `target` by a copy of `source`. */
  copySequenceStateFromOtherSequence(target: number, source: number): Promise<number>
  /** The last position in memory; −1 if there is none. */
  getSequenceKvCacheMaxPosition(sequence: number): number
  /** Sets the adapters that apply to what is computed from now on. */
  setLoras(adapters: readonly NativeAdapter[], scales: readonly number[]): void
  /** Writes the memory of a sequence with its tokens. Returns the bytes. */
  saveSequenceStateToFile(path: string, sequence: number, tokens: Uint32Array): Promise<number>
  /** Replaces the memory of a sequence. Returns the tokens of the file; rejects if it has more than `maxTokens`. */
  loadSequenceStateFromFile(path: string, sequence: number, maxTokens: number): Promise<Uint32Array>
}

export interface SamplerConfig {
  temperature?: number
  topK?: number
  topP?: number
  minP?: number
  seed?: number
  repeatPenalty?: number
  repeatPenaltyMaxTokens?: number
  repeatPenaltyTokens?: Uint32Array
  repeatPenaltyPresencePenalty?: number
  repeatPenaltyFrequencyPenalty?: number
  tokenBiasKeys?: Uint32Array
  tokenBiasValues?: Float32Array
  grammarEvaluationState?: NativeGrammarState
}

/** Samples one token at a time and records it, for penalties and grammar. */
export interface NativeSampler {
  applyConfig(config: SamplerConfig): void
  dispose(): void
}

/** A loaded LoRA adapter. */
export type NativeAdapter = object & { readonly brand: 'AddonModelLora' }

export type NativeGrammarState = object & { readonly brand: 'AddonGrammarEvaluationState' }

interface Addon {
  AddonModelLora: new (model: object, path: string) => NativeAdapter
  AddonSampler: {
    new (model: object): NativeSampler
  }
  AddonGrammar: new (grammar: string, options: { addonExports: Addon }) => object
  AddonGrammarEvaluationState: new (model: object, grammar: object) => NativeGrammarState
}

interface NativeModel {
  loadLora(adapter: NativeAdapter): Promise<void>
}

const maxGrammars = 8

export type Native = ReturnType<typeof openNative>

/** Throws Failure `worker_error` if this version of node-llama-cpp lacks the functions. */
export function openNative(llama: Llama, model: LlamaModel, memory: LlamaContext) {
  const addon = (llama as unknown as { _bindings?: Addon })._bindings
  const nativeModel = (model as unknown as { _model?: NativeModel })._model
  const context = (memory as unknown as { _ctx?: NativeContext })._ctx
  const { AddonSampler, AddonGrammar, AddonGrammarEvaluationState } = addon ?? {}
  const classes = [AddonSampler, AddonGrammar, AddonGrammarEvaluationState].every(part => typeof part === 'function')
  const methods = context && 'sampleToken' in context && 'addToBatch' in context && 'decodeBatch' in context
  if (!addon || !nativeModel || !classes || !methods)
    throw new Failure(
      'worker_error',
      'This version of node-llama-cpp is not supported by the engine. Install the version in its package.json.',
    )

  /** The most recently used grammars by text. */
  const grammars = new Map<string, object>()

  /** Creating a grammar validates it, which takes as long as parsing it for an answer. */
  const grammarOf = (text: string): object => {
    const grammar = grammars.get(text) ?? new addon.AddonGrammar(text, { addonExports: addon })
    grammars.delete(text)
    grammars.set(text, grammar)
    if (grammars.size > maxGrammars) grammars.delete(grammars.keys().next().value!)
    return grammar
  }

  return {
    context,
    newSampler(config: SamplerConfig): NativeSampler {
      const sampler = new addon.AddonSampler(nativeModel)
      sampler.applyConfig(config)
      return sampler
    },
    /** Returns the initial state of a GBNF grammar. Throws Failure `invalid_value` if llama.cpp cannot parse it. */
    newGrammarState(grammar: string): NativeGrammarState {
      try {
        return new addon.AddonGrammarEvaluationState(nativeModel, grammarOf(grammar))
      } catch (cause) {
        throw new Failure('invalid_value', 'llama.cpp cannot read the grammar of this request.', { cause })
      }
    },
    /** Loads an adapter of the model. Rejects if the file is none, or is for another model. */
    async loadAdapter(path: string): Promise<NativeAdapter> {
      const adapter = new addon.AddonModelLora(nativeModel, path)
      await nativeModel.loadLora(adapter)
      return adapter
    },
    /** Keeps the context from being garbage-collected while the addon uses it. */
    memory,
  }
}
