import type { LlamaModel, Token } from 'node-llama-cpp'
import { inTimeSlices } from '../../../core/time-slice.ts'
import type { LoadedAdapter } from './adapters.ts'
import { openChoice } from './choice.ts'
import { type Guard, openGuard } from './grammar/guard.ts'
import type { GuessLength } from './guess-length.ts'
import type { LikelyToken, TokenLogprob } from './logprobs.ts'
import type { Native } from './native.ts'
import type { Rounds } from './rounds.ts'
import { type Sampling, seedOf } from './sampling.ts'
import type { Slots } from './slots.ts'
import type { Vocabulary } from './vocabulary.ts'

/** New text of a choice. Each choice ends with exactly one piece that has a reason. */
export interface GeneratedPiece {
  text: string
  /** The tokens of the text, if `logprobs` is set. */
  tokens: readonly TokenLogprob[]
  reason: GenerationEnd | null
}
export type GenerationEnd = 'stop' | 'length'

/** `choice` counts from 0. While a returned promise is pending, no token is computed for that choice. */
export type OnPiece = (piece: GeneratedPiece, choice: number) => void | Promise<void>

export interface GenerateWork {
  prompt: readonly Token[]
  sampling: Sampling
  /** Maximum tokens per choice; 0 only if the request is for the prompt's tokens. */
  limit: number
  /** Non-empty, well-formed strings. */
  stops: readonly string[]
  signal: AbortSignal
  /** Number of answers; default 1. */
  choices?: number
  /** Grammar of the text in GBNF, from its first token on. */
  grammar?: string
  /** Number of alternatives reported with each token, 0 to 20. Omitted: no log probabilities. */
  logprobs?: number
  /** Whether to keep a space before the first word: for text that continues the prompt. */
  keepFirstSpace?: boolean
  /** Requests the probabilities of the prompt's tokens; called before the first piece. */
  onPrompt?: (tokens: readonly PromptToken[]) => void
  /**
   * An opaque name of the organization for which the conversation may be saved; omitted: it is not saved, and no saved
   * one is used.
   */
  owner?: string | undefined
  /** The LoRA adapter of the answer; omitted: the model alone. */
  adapter?: LoadedAdapter | undefined
  /** Control tokens to output as text, such as `<tool_call>`. Others produce no text. */
  showControls?: readonly string[]
}

/** A token of the prompt. The first has no probability, because no token precedes it. */
export interface PromptToken extends Omit<LikelyToken, 'logprob'> {
  logprob: number | null
  top_logprobs: LikelyToken[]
}

export interface Generated {
  /** Tokens of all choices. */
  completionTokens: number
  /** Tokens of the prompt that were in memory already. */
  cachedTokens: number
}

export interface GeneratorParts {
  native: Native
  model: LlamaModel
  vocabulary: Vocabulary
  slots: Slots
  rounds: Rounds
  /** Tokens of one request, prompt and answer together. */
  context: number
  /** How many tokens are guessed; absent if none are. */
  guessLength?: GuessLength | undefined
}

export function openGenerator(parts: GeneratorParts) {
  const { slots, rounds, vocabulary } = parts
  const guards = new Map<string, Promise<Guard>>()

  /** Cached per set of shown control tokens, because a guard scans the whole vocabulary. */
  function guardFor(shown: readonly string[] = []): Promise<Guard> {
    const key = JSON.stringify(shown)
    const known = guards.get(key)
    if (known) return known
    const made = inTimeSlices(openGuard(vocabulary, shown))
    guards.set(key, made)
    return made
  }

  async function begin(work: GenerateWork, onPiece: OnPiece, index: number) {
    const { sampling } = work
    const seed = seedOf(sampling.seed + index)
    const guard = work.grammar === undefined ? undefined : await guardFor(work.showControls)
    await slots.take(work.signal, index > 0)
    const hooks = { onPiece: (piece: GeneratedPiece) => onPiece(piece, index), wake: rounds.wake }
    const own = { ...work, sampling: { ...sampling, seed }, onPrompt: index === 0 ? work.onPrompt : undefined, guard }
    try {
      const choice = openChoice(parts, own, hooks)
      rounds.add(choice.member)
      return choice
    } catch (error) {
      slots.give()
      throw error
    }
  }

  return {
    /**
     * Continues the prompt `choices` times. `onPiece` receives each piece of final text, and is not called after this
     * has ended. Each answer waits for its slot only, so that requests cannot deadlock; answers after the first reuse
     * the computed prompt. Throws the signal's reason, at most one token after the abort, and Failure `queue_full`.
     */
    async generate(work: GenerateWork, onPiece: OnPiece): Promise<Generated> {
      const { choices = 1 } = work
      if (choices === 1) return (await begin(work, onPiece, 0)).ended
      const other = new AbortController()
      const signal = AbortSignal.any([work.signal, other.signal])
      const all = { ...work, signal }
      const first = await begin(all, onPiece, 0)
      await first.prompted
      const later = async (index: number) => (await begin(all, onPiece, index)).ended
      const ends = [first.ended, ...Array.from({ length: choices - 1 }, (_, at) => later(at + 1))]
      for (const end of ends) end.catch((error: unknown) => other.abort(error))
      const settled = await Promise.allSettled(ends)
      let completionTokens = 0
      let cachedTokens = 0
      for (const [at, end] of settled.entries()) {
        if (end.status === 'rejected') throw other.signal.aborted ? other.signal.reason : end.reason
        completionTokens += end.value.completionTokens
        if (at === 0) cachedTokens = end.value.cachedTokens
      }
      return { completionTokens, cachedTokens }
    },
  }
}

export type Generator = ReturnType<typeof openGenerator>

/** Tokenizes a prompt and adds the start token. Control tokens are recognized only in parts that are not `plain`. */
export function tokensOf(
  model: Pick<LlamaModel, 'tokenize' | 'tokens'>,
  stretches: readonly { text: string; plain: boolean }[],
): Token[] {
  const tokens = stretches.flatMap(({ text, plain }, at) =>
    // A later part must not get the space that SentencePiece adds before a text.
    at === 0 ? model.tokenize(text, !plain) : model.tokenize(text, !plain, 'trimLeadingSpace'),
  )
  const { bos, shouldPrependBosToken } = model.tokens
  return shouldPrependBosToken && bos !== null && tokens[0] !== bos ? [bos, ...tokens] : tokens
}
