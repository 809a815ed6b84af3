import type { Llama, LlamaModel, Token, TokenBias } from 'node-llama-cpp'
import { Failure } from '../../../core/failure.ts'
import { alonePriority, evaluatePrompt, sharedPriority } from './prompt.ts'
import type { Step } from './rounds.ts'
import type { Sampling } from './sampling.ts'
import type { Sequences, Slot } from './sequences.ts'
import { openText } from './stop.ts'
import type { Vocabulary } from './vocabulary.ts'

/** One token as OpenAI reports it. `logprob` is the natural logarithm of the model's own probability, whatever the sampling. */
export interface LikelyToken {
  token: string
  logprob: number
  /** The bytes it stands for, which may be a part of a character. */
  bytes: number[]
}
export interface TokenLogprob extends LikelyToken {
  /** The likeliest tokens at this place, best first. */
  top_logprobs: LikelyToken[]
}

/** What a choice has newly said. Each choice ends with exactly one piece that has a reason. */
export interface Piece {
  text: string
  /** The tokens that the text comes from, where `logprobs` asked for them. */
  tokens: readonly TokenLogprob[]
  reason: FinishReason | null
}
export type FinishReason = 'stop' | 'length'

/** `choice` counts from 0. When it gives a promise, no token is computed for that choice meanwhile. */
export type Say = (piece: Piece, choice: number) => void | Promise<void>

export interface GenerateWork {
  prompt: readonly Token[]
  sampling: Sampling
  /** Tokens each choice may have. */
  limit: number
  /** Non-empty, well-formed strings. */
  stops: readonly string[]
  signal: AbortSignal
  /** Answers to give; 1 when left out. */
  choices?: number
  /** What the text must keep to, in GBNF: from its first token on, or from where it has come to say `after`. */
  constraint?: { grammar: string; after?: string }
  /** How many of the likeliest tokens to report beside each token, 0 to 20. Left out, nothing is reported. */
  logprobs?: number
  /** Control tokens to be said as the text they are written with, such as `<tool_call>`. Others say nothing. */
  showControls?: readonly string[]
}

export interface Generated {
  /** Tokens of all choices, those that end a text not counted. */
  completionTokens: number
  /** Tokens of the prompt that were in memory already. */
  cachedTokens: number
}

export interface GeneratorParts {
  llama: Llama
  model: LlamaModel
  library: typeof import('node-llama-cpp')
  vocabulary: Vocabulary
  sequences: Sequences
  step: Step
  /** Tokens of one request, prompt and answer together. */
  context: number
  /** Tokens of a prompt that are computed in one step. */
  piece: number
}

export type Generator = ReturnType<typeof openGenerator>

/** Continues prompts. */
export function openGenerator(parts: GeneratorParts) {
  const { sequences } = parts
  return {
    /**
     * Continues the prompt. `say` hears each piece of text that is sure. Throws the signal's reason, at the latest
     * one token after it was raised, and Failure `queue_full`.
     */
    async generate(work: GenerateWork, say: Say): Promise<Generated> {
      const slot = await sequences.take(work.prompt, work.signal)
      try {
        return await continuePrompt(parts, slot, work, say)
      } catch (error) {
        // What llama.cpp left in the memory of a slot after an error of its own is anybody's guess.
        if (!(error instanceof Failure)) {
          slot.exact = 0
          await slot.sequence.clearHistory()
        }
        throw error
      } finally {
        sequences.give(slot)
      }
    },
  }
}

async function continuePrompt(parts: GeneratorParts, slot: Slot, work: GenerateWork, say: Say): Promise<Generated> {
  const { library, llama, model, step, vocabulary } = parts
  const { prompt, sampling, limit, signal, constraint } = work
  const { reproducible } = sampling
  const cachedTokens = await evaluatePrompt({ slot, prompt, piece: parts.piece, reproducible, step, signal })
  const text = openText({ stops: work.stops, dropFirstSpace: vocabulary.dropFirstSpace })
  const said: Token[] = []
  const grammar =
    constraint &&
    new library.LlamaGrammarEvaluationState({
      model,
      grammar: await llama.createGrammar({ grammar: constraint.grammar }),
    })
  let constrained = constraint !== undefined && constraint.after === undefined
  let written = ''
  const tokens = slot.sequence.evaluateWithMetadata(
    prompt.slice(-1),
    {},
    {
      temperature: sampling.temperature,
      topK: sampling.topK,
      topP: sampling.topP,
      minP: sampling.minP,
      seed: sampling.seed,
      yieldEogToken: true,
      evaluationPriority: reproducible ? alonePriority : sharedPriority,
      repeatPenalty: sampling.penalties && {
        ...sampling.penalties,
        punishTokens: () => said,
        // Constant, because the sampler is made anew whenever it changes.
        maxPunishTokens: parts.context,
      },
      tokenBias: sampling.bias.size > 0 ? biasOf(sampling.bias, library.TokenBias.for(model), vocabulary) : undefined,
      grammarEvaluationState: grammar && (() => (constrained ? grammar : undefined)),
    },
  )
  const ended = async (text: string, reason: FinishReason) => {
    await say({ text, tokens: [], reason }, 0)
    return { completionTokens: said.length, cachedTokens }
  }
  try {
    for (;;) {
      signal.throwIfAborted()
      const { value, done } = await step(() => tokens.next())
      if (done || vocabulary.endsText(value.token)) return await ended(text.end(), 'stop')
      said.push(value.token)
      const fresh = text.push(vocabulary.bytes(value.token, work.showControls))
      if (constraint?.after !== undefined && !constrained) {
        written += fresh
        constrained = written.includes(constraint.after)
      }
      if (text.stopped) return await ended(fresh, 'stop')
      if (said.length >= limit) {
        const rest = fresh + text.end()
        return await ended(rest, text.stopped ? 'stop' : 'length')
      }
      await say({ text: fresh, tokens: [], reason: null }, 0)
    }
  } finally {
    await tokens.return()
  }
}

/** node-llama-cpp passes over the tokens that end a text; better to refuse than to seem to have done it. */
function biasOf(given: Sampling['bias'], bias: TokenBias, vocabulary: Vocabulary): TokenBias {
  for (const [token, logit] of given) {
    if (vocabulary.endsText(token as Token))
      throw new Failure(
        'unsupported_parameter',
        `The built-in engine cannot change how likely the answer is to end (token ${token}). Use max_tokens or stop.`,
        { param: 'logit_bias' },
      )
    bias.set(token as Token, { logit })
  }
  return bias
}

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
