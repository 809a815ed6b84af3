import type { Token } from 'node-llama-cpp'
import type { Step } from './rounds.ts'
import type { Slot } from './sequences.ts'

/**
 * The numbers that come out of a matrix product depend, in their last bits, on how many tokens were computed together;
 * over some hundred tokens that is enough to draw another word (38 of 160 seeded answers differed under load,
 * measured). So a request with a seed is computed alone in its batch and in pieces of a fixed size, and reuses only
 * what was computed like that. All others share batches and reuse whatever fits.
 */
export const alonePriority = 1
export const sharedPriority = 5

/**
 * How many tokens of a slot a prompt may reuse. `common` is how far its state and the prompt agree, `exact` how many
 * tokens at its start were computed in fixed pieces, `wanted` how many of the prompt come before its last token.
 */
export function reusable(common: number, exact: number, wanted: number, piece: number, reproducible: boolean): number {
  if (!reproducible) return Math.min(common, wanted)
  if (common >= wanted && exact === wanted) return wanted
  return wholePieces(Math.min(common, exact, wanted), piece)
}

/** How much of `exact` is left when all but the first `kept` tokens are dropped: the last piece was cut then. */
export const exactAfter = (exact: number, kept: number, piece: number): number =>
  kept >= exact ? exact : wholePieces(kept, piece)

const wholePieces = (tokens: number, piece: number) => Math.floor(tokens / piece) * piece

export interface PromptWork {
  slot: Slot
  prompt: readonly Token[]
  /** Tokens computed in one step; between two the request can be given up and others get their turn. */
  piece: number
  reproducible: boolean
  step: Step
  signal: AbortSignal
}

/**
 * Brings the slot to where only the last token of the prompt is missing. Gives how many tokens it had already.
 * Throws the signal's reason.
 */
export async function evaluatePrompt({ slot, prompt, piece, reproducible, step, signal }: PromptWork): Promise<number> {
  const { sequence } = slot
  const wanted = prompt.length - 1
  const { firstDifferentIndex: common } = sequence.compareContextTokens(prompt as Token[])
  const reuse = reusable(common, slot.exact, wanted, piece, reproducible)
  await step(() => sequence.adaptStateToTokens(prompt.slice(0, reuse), false))
  // Recurrent models and sliding windows cannot forget a part; what is left then is less than was asked for.
  if (reproducible && sequence.nextTokenIndex !== reuse) await step(() => sequence.clearHistory())
  const reused = sequence.nextTokenIndex
  slot.exact = exactAfter(slot.exact, reused, piece)
  const evaluationPriority = reproducible ? alonePriority : sharedPriority
  for (let from = reused; from < wanted; from += piece) {
    signal.throwIfAborted()
    const tokens = prompt.slice(from, Math.min(from + piece, wanted))
    await step(() => sequence.evaluateWithoutGeneratingNewTokens(tokens, { evaluationPriority }))
  }
  if (reproducible) slot.exact = wanted
  return reused
}

/**
 * What goes into one batch, for node-llama-cpp: all that may be shared together, as far as there is room, and
 * otherwise one that must be alone.
 */
export function batchOf<Item extends { tokens: readonly unknown[]; evaluationPriority: number }>({
  items,
  size,
}: {
  items: readonly Item[]
  size: number
}): { item: Item; processAmount: number }[] {
  const shared = items.filter(item => item.evaluationPriority !== alonePriority)
  if (shared.length === 0) return items.slice(0, 1).map(item => ({ item, processAmount: item.tokens.length }))
  let room = size
  // Those who need one token first: they are in the middle of a sentence.
  return shared
    .toSorted((a, b) => a.tokens.length - b.tokens.length)
    .map(item => {
      const processAmount = Math.min(item.tokens.length, room)
      room -= processAmount
      return { item, processAmount }
    })
    .filter(({ processAmount }) => processAmount > 0)
}
