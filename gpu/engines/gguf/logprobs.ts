import type { Token } from 'node-llama-cpp'
import type { Native, NativeSampler } from './native.ts'
import type { Vocabulary } from './vocabulary.ts'

/**
 * One token as OpenAI reports it. `logprob` is the natural logarithm of the model's own probability, whatever the
 * sampling.
 */
export interface LikelyToken {
  token: string
  logprob: number
  /** UTF-8 bytes, possibly part of a character; empty for a control token that is not shown. */
  bytes: number[]
}
export interface TokenLogprob extends LikelyToken {
  /** The most likely tokens at this position, best first. */
  top_logprobs: LikelyToken[]
}

/** Replaces −∞, which JSON cannot represent. OpenAI uses the same number. */
const never = -9999

/**
 * Log probabilities from logits: `pairs` holds token, logit, token, logit…, first the `top` likeliest, best first, and
 * among all of them `token`; `weight` is the sum of e^(logit − largest logit) over the vocabulary.
 */
function logprobsOf(pairs: readonly number[], weight: number, token: number, top: number) {
  const base = pairs[1]! + Math.log(weight)
  const logprob = (at: number) => Math.max(never, pairs[at + 1]! - base)
  let own = never
  for (let at = 0; at < pairs.length; at += 2) if (pairs[at] === token) own = logprob(at)
  return {
    logprob: own,
    top: Array.from({ length: Math.min(top, pairs.length / 2) }, (_, at) => ({
      token: pairs[at * 2]!,
      logprob: logprob(at * 2),
    })),
  }
}

/**
 * Reads the model's own distribution, independent of sampling: a second sampler without settings reads the same logits.
 * Handles one token at a time.
 */
export function openLogprobs(native: Native, vocabulary: Vocabulary, top: number, shown?: readonly string[]) {
  const sampler: NativeSampler = native.newSampler({})
  const written = (token: number, logprob: number): LikelyToken => ({
    ...vocabulary.written(token as Token, shown),
    logprob,
  })
  return {
    /** Returns the token's log probability, by the logits at this index of the batch. */
    async of(token: number, at: number): Promise<TokenLogprob> {
      // At least one is requested, because the largest logit is the reference for all others.
      const wanted: [number[], false, false, false, number] = [[token], false, false, false, Math.max(1, top)]
      const [, , , pairs, weight] = await native.context.sampleToken(at, sampler, false, false, wanted, true)
      const found = logprobsOf(pairs, weight, token, top)
      return {
        ...written(token, found.logprob),
        top_logprobs: found.top.map(likely => written(likely.token, likely.logprob)),
      }
    },
    close: () => sampler.dispose(),
  }
}

export type Logprobs = ReturnType<typeof openLogprobs>
