/** Someone who wants tokens computed. */
export interface BatchMember {
  /** Tokens to be computed before the next one can be drawn; 1 in the middle of an answer. */
  remaining: number
  /** At most so many at once. */
  most: number
}

/**
 * How many tokens of each asker go into the next batch, in the order given, which is the order of arrival. Whoever is
 * in the middle of an answer always gets his token. Prompts share `room`, what a step may take at most: the oldest is
 * sure of half of it, so that it gets on whoever else comes, and the shortest are done first with the rest.
 */
export function planBatch(askers: readonly BatchMember[], size: number, room: number): number[] {
  const amounts: number[] = askers.map(({ remaining }) => (remaining === 1 ? 1 : 0))
  const answering = amounts.reduce((sum, amount) => sum + amount, 0)
  const prompts = askers.map((_, at) => at).filter(at => askers[at]!.remaining > 1)
  // With nobody waiting for his next word there is no reason to keep steps short.
  let left = Math.min(size - answering, answering > 0 ? room : size)
  const give = (at: number, share: number) => {
    const { remaining, most } = askers[at]!
    const amount = Math.min(Math.min(remaining, most) - amounts[at]!, share)
    amounts[at]! += amount
    left -= amount
  }
  const [oldest] = prompts
  if (oldest === undefined || left <= 0) return amounts
  give(oldest, Math.ceil(left / 2))
  for (const at of prompts.toSorted((a, b) => askers[a]!.remaining - askers[b]!.remaining)) give(at, left)
  return amounts
}
