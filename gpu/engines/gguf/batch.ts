/** A generation that needs tokens computed. */
export interface BatchMember {
  /** Tokens to compute before the next one can be sampled; 1 while decoding. */
  remaining: number
  /** Maximum tokens per batch. */
  most: number
}

/**
 * Returns the number of tokens of each member in the next batch. Members are in order of arrival. A decoding member
 * always gets its token. Prompts share at most `room` tokens per step: the oldest gets half of it, so that it always
 * progresses, and the rest goes to the shortest first.
 */
export function planBatch(members: readonly BatchMember[], size: number, room: number): number[] {
  const amounts: number[] = members.map(({ remaining }) => (remaining === 1 ? 1 : 0))
  const answering = amounts.reduce((sum, amount) => sum + amount, 0)
  const prompts = members.map((_, at) => at).filter(at => members[at]!.remaining > 1)
  // Without decoding members there is no reason to keep steps short.
  let left = Math.min(size - answering, answering > 0 ? room : size)
  const assign = (at: number, share: number) => {
    const { remaining, most } = members[at]!
    const amount = Math.min(Math.min(remaining, most) - amounts[at]!, share)
    amounts[at]! += amount
    left -= amount
  }
  const [oldest] = prompts
  if (oldest === undefined || left <= 0) return amounts
  assign(oldest, Math.ceil(left / 2))
  for (const at of prompts.toSorted((a, b) => members[a]!.remaining - members[b]!.remaining)) assign(at, left)
  return amounts
}
