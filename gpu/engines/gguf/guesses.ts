/** How many tokens must be the same for a guess. With two, half of the guesses in prose were wrong at their first token. */
const sameTokens = 3
/** Fewest and most places that are remembered: 4 bytes each. */
const [fewest, most] = [2 ** 10, 2 ** 16]

/**
 * Guesses how a text continues: as it did after the last place with the same three tokens, in the prompt or the answer.
 * Code that is edited, quotes and tables repeat themselves. One table of fixed size for each text, 256 KiB at most.
 */
export function openGuesses(prompt: readonly number[]) {
  const tokens: number[] = []
  const size = Math.min(most, Math.max(fewest, 2 ** Math.ceil(Math.log2(2 * prompt.length + 1))))
  /** The position that followed three tokens, by their hash; 0 if none did. A later place replaces an earlier one. */
  const followers = new Int32Array(size)

  /** The place in the table of the three tokens before a position. */
  function placeOf(position: number): number {
    let hash = 0
    for (let at = position - sameTokens; at < position; at++)
      hash = Math.imul(hash ^ tokens[at]!, 0x9e3779b1) ^ (hash >>> 15)
    return (hash >>> 8) & (size - 1)
  }

  function add(token: number): void {
    // Only now does anything follow the tokens before.
    if (tokens.length >= sameTokens) followers[placeOf(tokens.length)] = tokens.length
    tokens.push(token)
  }
  for (const token of prompt) add(token)

  return {
    /** Adds the next token of the text. */
    add,
    /** Returns `count` tokens that may follow; none where nothing like it was before. What repeats is repeated further. */
    next(count: number): readonly number[] {
      const end = tokens.length
      if (end < sameTokens || count <= 0) return []
      const from = followers[placeOf(end)]!
      for (let back = 1; back <= sameTokens; back++) if (tokens[from - back] !== tokens[end - back]) return []
      const period = end - from
      return Array.from({ length: count }, (_, at) => tokens[from + (at % period)]!)
    },
  }
}
export type Guesses = ReturnType<typeof openGuesses>
