import type { Token } from 'node-llama-cpp'
import type { Native, NativeSampler } from './native.ts'
import type { Vocabulary } from './vocabulary.ts'

/** One token as OpenAI reports it. `logprob` is the natural logarithm of the model's own probability, whatever the sampling. */
export interface LikelyToken {
  token: string
  logprob: number
  /** The bytes that it says: maybe a part of a character; none where it is a control token that is not shown. */
  bytes: number[]
}
export interface TokenLogprob extends LikelyToken {
  /** The likeliest tokens at this place, best first. */
  top_logprobs: LikelyToken[]
}

/** What JSON can hold in place of a probability of zero. OpenAI gives the same number. */
const never = -9999

/**
 * Log probabilities from logits: `pairs` holds token, logit, token, logit…, first the `top` likeliest, best first, and
 * among all of them `token`; `weight` is the sum of e^(logit − largest logit) over the vocabulary.
 */
export function logprobsOf(
  pairs: readonly number[],
  weight: number,
  token: number,
  top: number,
): { logprob: number; top: { token: number; logprob: number }[] } {
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
 * Reads the model's own distribution, beside whatever is drawn from it: a sampler that changes nothing looks at the
 * same logits. One token at a time.
 */
export function openLogprobs(native: Native, vocabulary: Vocabulary, top: number, shown?: readonly string[]) {
  const sampler: NativeSampler = native.newSampler({})
  const written = (token: number, logprob: number): LikelyToken => ({
    ...vocabulary.written(token as Token, shown),
    logprob,
  })
  return {
    /** The token's probability by the logits at this place of the batch. */
    async of(token: number, at: number): Promise<TokenLogprob> {
      // One more than nothing is always asked for: the largest logit is the measure of all others.
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
