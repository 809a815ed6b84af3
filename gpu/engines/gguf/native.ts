import type { Llama, LlamaContext, LlamaModel } from 'node-llama-cpp'
import { Failure } from '../../../core/failure.ts'

/**
 * The part of node-llama-cpp that its published types leave out: llama.cpp itself, as its addon gives it. Its own
 * `evaluate()` shows no logits beside a grammar or a sampling, passes over a bias on tokens that end a text, cannot
 * give the memory of one prompt to several answers, and spends on locks and promises as much as a small model spends
 * on computing (1.4 to 1.8 times the tokens a second without it, measured). The version of the package is pinned;
 * what is used here is looked for when the engine starts, and tested with tiny models.
 */
export interface NativeContext {
  /** Makes room for a batch of so many tokens and forgets the one before. */
  initBatch(tokens: number): void
  /** Adds tokens of a sequence from a position on. Gives where the logits of the named ones will be. */
  addToBatch(sequence: number, position: number, tokens: Uint32Array, logitsOf: Uint32Array): Uint32Array
  decodeBatch(): Promise<void>
  /** Draws from the logits and lets the sampler know; −1 when nothing can be drawn. */
  sampleToken(at: number, sampler: NativeSampler): Promise<number>
  /**
   * The same with logits: those of the named tokens and of the `top` likeliest, as token, logit, token, logit…,
   * and the sum of e^(logit − largest logit) over all tokens.
   */
  sampleToken(
    at: number,
    sampler: NativeSampler,
    probabilities: false,
    confidence: false,
    logits: [tokens: readonly number[], max: false, min: false, selected: false, top: number],
    weight: true,
  ): Promise<[token: number, probabilities: undefined, confidence: undefined, logits: number[], weight: number]>
  /** Forgets everything about a sequence. */
  disposeSequence(sequence: number): void
  /** Forgets positions from `start` to before `end`; −1 is all that follow. False when this memory has no such part. */
  removeTokenCellsFromSequence(sequence: number, start: number, end: number): boolean
  /** The first position that is still in memory. Later than 0 where a model looks at a sliding window only. */
  getSequenceKvCacheMinPosition(sequence: number): number
  /** Makes one sequence remember what another does, and nothing else. */
  copySequenceStateFromOtherSequence(target: number, source: number): Promise<number>
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

/** Draws tokens; remembers which, for penalties and grammar. Works on one token at a time. */
export interface NativeSampler {
  applyConfig(config: SamplerConfig): void
  dispose(): void
}

/** How far a text has come in a grammar. */
export type NativeGrammarState = object & { readonly brand: 'AddonGrammarEvaluationState' }

interface Addon {
  AddonSampler: {
    new (model: object): NativeSampler
  }
  AddonGrammar: new (grammar: string, options: { addonExports: Addon }) => object
  AddonGrammarEvaluationState: new (model: object, grammar: object) => NativeGrammarState
}

const maxGrammars = 8

export type Native = ReturnType<typeof openNative>

/** Throws Failure `worker_error` for a version of node-llama-cpp that is built otherwise. */
export function openNative(llama: Llama, model: LlamaModel, memory: LlamaContext) {
  const addon = (llama as unknown as { _bindings?: Addon })._bindings
  const nativeModel = (model as unknown as { _model?: object })._model
  const context = (memory as unknown as { _ctx?: NativeContext })._ctx
  const { AddonSampler, AddonGrammar, AddonGrammarEvaluationState } = addon ?? {}
  const classes = [AddonSampler, AddonGrammar, AddonGrammarEvaluationState].every(part => typeof part === 'function')
  const methods = context && 'sampleToken' in context && 'addToBatch' in context && 'decodeBatch' in context
  if (!addon || !nativeModel || !classes || !methods)
    throw new Failure(
      'worker_error',
      'This version of node-llama-cpp is not the one that the engine was made for. Install the one that its package.json names.',
    )

  /** By their texts, those that were used last; none of them holds more than its text. */
  const grammars = new Map<string, object>()

  /** To make one is to see whether llama.cpp can read it, which takes as long as the reading for an answer. */
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
    /** The beginning of a grammar in GBNF. Throws Failure `invalid_value` when llama.cpp cannot read it. */
    newGrammarState(grammar: string): NativeGrammarState {
      try {
        return new addon.AddonGrammarEvaluationState(nativeModel, grammarOf(grammar))
      } catch (cause) {
        throw new Failure('invalid_value', 'llama.cpp cannot read the grammar of this request.', { cause })
      }
    },
    /** Keeps what the addon works with from being collected. */
    memory,
  }
}
