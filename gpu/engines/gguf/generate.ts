import type { LlamaModel, Token, TokenBias } from 'node-llama-cpp'
import { Failure } from '../../../core/failure.ts'
import { alonePriority, evaluatePrompt, sharedPriority } from './prompt.ts'
import type { Step } from './rounds.ts'
import type { Sampling } from './sampling.ts'
import type { Slot } from './sequences.ts'
import type { TextOptions } from './stop.ts'
import { openText } from './stop.ts'
import type { Vocabulary } from './vocabulary.ts'

export interface GenerateWork extends TextOptions {
  slot: Slot
  prompt: readonly Token[]
  sampling: Sampling
  /** Tokens the answer may have. */
  limit: number
  context: number
  piece: number
  step: Step
  signal: AbortSignal
  vocabulary: Vocabulary
  newBias: () => TokenBias
}

export interface Generated {
  reason: 'stop' | 'length'
  completionTokens: number
  cachedTokens: number
}

/**
 * Answers one prompt. `say` is given each piece of text that is sure, and is waited for when it gives a promise; no
 * token is computed meanwhile. Throws the signal's reason, at the latest one token after it was raised.
 */
export async function generate(work: GenerateWork, say: (text: string) => void | Promise<void>): Promise<Generated> {
  const { slot, prompt, sampling, limit, step, signal, vocabulary } = work
  const { reproducible } = sampling
  const cachedTokens = await evaluatePrompt({ slot, prompt, piece: work.piece, reproducible, step, signal })
  const text = openText(work)
  const said: Token[] = []
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
        maxPunishTokens: work.context,
      },
      tokenBias: sampling.bias.size > 0 ? biasOf(sampling.bias, work.newBias(), vocabulary) : undefined,
    },
  )
  const ended = (reason: Generated['reason']) => ({ reason, completionTokens: said.length, cachedTokens })
  try {
    for (;;) {
      signal.throwIfAborted()
      const { value, done } = await step(() => tokens.next())
      if (done || vocabulary.endsText(value.token)) {
        await say(text.end())
        return ended('stop')
      }
      said.push(value.token)
      await say(text.push(vocabulary.bytes(value.token)))
      if (text.stopped) return ended('stop')
      if (said.length >= limit) {
        await say(text.end())
        return ended(text.stopped ? 'stop' : 'length')
      }
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
