import type { LlamaModel, Token } from 'node-llama-cpp'
import { inTimeSlices } from '../../../core/time-slice.ts'
import { openChoice } from './choice.ts'
import { type Guard, openGuard } from './grammar/guard.ts'
import type { LikelyToken, TokenLogprob } from './logprobs.ts'
import type { Native } from './native.ts'
import type { Rounds } from './rounds.ts'
import { type Sampling, seedOf } from './sampling.ts'
import type { Slots } from './slots.ts'
import type { Vocabulary } from './vocabulary.ts'

/** What a choice has newly said. Each choice ends with exactly one piece that has a reason. */
export interface Piece {
  text: string
  /** The tokens that the text comes from, where `logprobs` asked for them. */
  tokens: readonly TokenLogprob[]
  reason: FinishReason | null
}
export type FinishReason = 'stop' | 'length'

/** `choice` counts from 0. When it gives a promise, no token is computed for that choice meanwhile. */
export type OnPiece = (piece: Piece, choice: number) => void | Promise<void>

export interface GenerateWork {
  prompt: readonly Token[]
  sampling: Sampling
  /** Tokens each choice may have; none only where the prompt's own are asked for. */
  limit: number
  /** Non-empty, well-formed strings. */
  stops: readonly string[]
  signal: AbortSignal
  /** Answers to give; 1 when left out. */
  choices?: number
  /** What the text must keep to, in GBNF, from its first token on. */
  grammar?: string
  /** How many of the likeliest tokens to report beside each token, 0 to 20. Left out, nothing is reported. */
  logprobs?: number
  /** Whether a space before the first word belongs to the text: where it goes on with one, and does not answer. */
  keepFirstSpace?: boolean
  /** Asks for the probabilities of the prompt's own tokens; hears them before the first piece, if there is any. */
  onPrompt?: (tokens: readonly PromptToken[]) => void
  /** Control tokens to be said as the text they are written with, such as `<tool_call>`. Others say nothing. */
  showControls?: readonly string[]
}

/** A token of the prompt. The first has no probability: there is nothing before it. */
export interface PromptToken extends Omit<LikelyToken, 'logprob'> {
  logprob: number | null
  top_logprobs: LikelyToken[]
}

export interface Generated {
  /** Tokens of all choices, those that end a text not counted. */
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
}

/** Continues prompts. */
export function openGenerator(parts: GeneratorParts) {
  const { slots, rounds, vocabulary } = parts
  const guards = new Map<string, Promise<Guard>>()

  /** A look at the whole vocabulary, so once for each choice of control tokens that are shown. */
  function guardFor(shown: readonly string[] = []): Promise<Guard> {
    const key = JSON.stringify(shown)
    const known = guards.get(key)
    if (known) return known
    const made = inTimeSlices(openGuard(vocabulary, shown))
    guards.set(key, made)
    return made
  }

  async function begin(work: GenerateWork, say: OnPiece, index: number) {
    const { sampling } = work
    const seed = seedOf(sampling.seed + index)
    const guard = work.grammar === undefined ? undefined : await guardFor(work.showControls)
    const slotChoice = await slots.take(work.prompt, work.signal, index > 0)
    const hooks = { say: (piece: Piece) => say(piece, index), wake: rounds.wake }
    let choice: ReturnType<typeof openChoice>
    try {
      choice = openChoice(
        parts,
        {
          ...work,
          sampling: { ...sampling, seed },
          onPrompt: index === 0 ? work.onPrompt : undefined,
          guard,
        },
        slotChoice,
        hooks,
      )
    } catch (error) {
      slots.give(slotChoice.slot)
      throw error
    }
    rounds.add(choice.member)
    return choice
  }

  return {
    /**
     * Continues the prompt, as often as asked. `say` hears each piece of text that is sure; not once more after this
     * has ended. Each answer waits for a slot of its own and for nothing else, so that no two requests can wait for
     * each other, and those after the first go on from what it has computed. Throws the signal's reason, at the latest
     * one token after it was raised, and Failure `queue_full`.
     */
    async generate(work: GenerateWork, say: OnPiece): Promise<Generated> {
      const { choices = 1 } = work
      if (choices === 1) return (await begin(work, say, 0)).ended
      const other = new AbortController()
      const signal = AbortSignal.any([work.signal, other.signal])
      const all = { ...work, signal }
      const first = await begin(all, say, 0)
      await first.prompted
      const ends = [first.ended, ...Array.from({ length: choices - 1 }, (_, at) => later(all, say, at + 1))]
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

  async function later(work: GenerateWork, say: OnPiece, index: number) {
    return (await begin(work, say, index)).ended
  }
}

export type Generator = ReturnType<typeof openGenerator>

/** The tokens of a prompt whose stretches may hold control tokens or not, with the one that begins a text. */
export function tokensOf(
  model: Pick<LlamaModel, 'tokenize' | 'tokens'>,
  stretches: readonly { text: string; plain: boolean }[],
): Token[] {
  const tokens = stretches.flatMap(({ text, plain }, at) =>
    // A stretch in the middle must not get the space that SentencePiece puts before a text.
    at === 0 ? model.tokenize(text, !plain) : model.tokenize(text, !plain, 'trimLeadingSpace'),
  )
  const { bos, shouldPrependBosToken } = model.tokens
  return shouldPrependBosToken && bos !== null && tokens[0] !== bos ? [bos, ...tokens] : tokens
}
