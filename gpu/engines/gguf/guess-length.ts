/** The share by which a round counts less than the next one: about the last fifty decide. */
const forgetting = 0.98
/** The share by which one guessed token changes the rate of its text. */
const learning = 0.05
/** The rate of an engine that has guessed nothing yet, and to which the rate of a text slowly returns while none is tried. */
const assumed = 0.5
const returning = 0.01
/** With less spread of sizes, nothing is known of what one more token costs. */
const leastSpread = 1e-3

/** The share of guessed tokens that were right lately, for one text. */
export interface GuessRate {
  /** Reports a guess of so many tokens, of which the first `right` were as sampled. */
  tried(tokens: number, right: number): void
  /** Reports that a guess was known but not tried. */
  skipped(): void
  readonly value: number
}

/**
 * Decides how many tokens to guess for an answer, by what rounds have taken: a round that computes more tokens takes longer,
 * and for all of its answers. With many answers at once a guess costs more than it saves, and then none is made. All times
 * are in milliseconds.
 */
export function openGuessLength(longest: number) {
  /** Decayed sums over rounds of their tokens x and time y. */
  let [weight, sumX, sumY, sumXX, sumXY] = [0, 0, 0, 0, 0]
  let average = assumed

  /** What a round takes: a fixed part and one for each token. A part that is not known yet is 0. */
  function costs(): { fixed: number; each: number } {
    if (weight === 0) return { fixed: 1, each: 0 }
    const [meanX, meanY] = [sumX / weight, sumY / weight]
    const spread = sumXX / weight - meanX * meanX
    const each = spread < leastSpread ? 0 : Math.max(0, (sumXY / weight - meanX * meanY) / spread)
    return { fixed: Math.max(meanY * 0.01, meanY - each * meanX), each }
  }

  return {
    /** Reports a round in which all answers were past their prompts. */
    measured(tokens: number, ms: number): void {
      weight = weight * forgetting + 1
      sumX = sumX * forgetting + tokens
      sumY = sumY * forgetting + ms
      sumXX = sumXX * forgetting + tokens * tokens
      sumXY = sumXY * forgetting + tokens * ms
    },
    /**
     * The number of tokens to guess for an answer in a round that computes `others` tokens besides its next one, for most
     * tokens of all answers per time. `rate`: the share of its guesses that is right.
     */
    best(others: number, rate: number): number {
      const { fixed, each } = costs()
      let [best, bestSpeed, gained] = [0, 0, 0]
      for (let length = 0; length <= longest; length++) {
        // The tokens of the answer: each guess counts only if all before it are right.
        gained += rate ** length
        const speed = (others + gained) / (fixed + each * (others + 1 + length))
        if (speed > bestSpeed) [best, bestSpeed] = [length, speed]
      }
      return best
    },
    /** The rate of a new text, which begins with what is usual here. */
    rate(): GuessRate {
      let value = average
      const learn = (right: number) => {
        value += learning * (right - value)
        average += (learning / 10) * (right - average)
      }
      return {
        tried(tokens, right) {
          for (let at = 0; at < right; at++) learn(1)
          if (right < tokens) learn(0)
        },
        skipped: () => void (value += returning * (assumed - value)),
        get value() {
          return value
        },
      }
    },
  }
}
export type GuessLength = ReturnType<typeof openGuessLength>
