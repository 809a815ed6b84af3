import type { NativeContext } from './native.ts'
import { commonStart, type Slot, type SlotChoice } from './slots.ts'

/**
 * The numbers that come out of a matrix product depend, in their last bits, on how many tokens were computed together;
 * over some hundred tokens that is enough to draw another word (38 of 160 seeded answers differed under load,
 * measured). So a request with a seed is computed alone in its batch and in pieces of a fixed size, and reuses only
 * what was computed like that. All others share batches and reuse whatever fits.
 */
export interface PromptWork {
  prompt: readonly number[]
  /** Tokens of a reproducible prompt that are computed in one step. */
  piece: number
  reproducible: boolean
  /** Whether nothing may be reused. */
  anew?: boolean
}

/**
 * How many tokens of a slot a prompt may reuse. `common` is how far its state and the prompt agree, `exact` how many
 * tokens at its start were computed in fixed pieces, `wanted` how many of the prompt come before its last token.
 */
export function reusableTokens(
  common: number,
  exact: number,
  wanted: number,
  piece: number,
  reproducible: boolean,
): number {
  if (!reproducible) return Math.min(common, wanted)
  if (common >= wanted && exact === wanted) return wanted
  return wholePieces(Math.min(common, exact, wanted), piece)
}

/** How much of `exact` is left when all but the first `kept` tokens are dropped: the last piece was cut then. */
export const exactAfter = (exact: number, kept: number, piece: number): number =>
  kept >= exact ? exact : wholePieces(kept, piece)

const wholePieces = (tokens: number, piece: number) => Math.floor(tokens / piece) * piece

/** How many tokens from `position` on a reproducible prompt computes next: a piece, and its last token for itself. */
export const pieceFrom = (position: number, promptLength: number, piece: number): number =>
  position >= promptLength - 1 ? 1 : Math.min(piece, promptLength - 1 - position)

/**
 * Brings the slot to where it holds a beginning of the prompt and nothing else, as long a one as there is. Gives its
 * length, which is less than the prompt's: the last token is always computed. Not while a batch is being computed.
 */
export async function prepareSlot(
  context: NativeContext,
  { slot, source }: SlotChoice,
  work: PromptWork,
  window: number,
) {
  const { prompt, piece, reproducible, anew = false } = work
  if (!anew && source !== slot && commonStart(source.tokens, prompt) > commonStart(slot.tokens, prompt)) {
    await context.copySequenceStateFromOtherSequence(slot.sequence, source.sequence)
    slot.tokens = source.tokens.slice()
    slot.exact = source.exact
  }
  const common = commonStart(slot.tokens, prompt)
  const kept = anew ? 0 : reusableTokens(common, slot.exact, prompt.length - 1, piece, reproducible)
  slot.exact = exactAfter(slot.exact, kept, piece)
  shorten(context, slot, kept, window)
  return slot.tokens.length
}

/** Drops all but the first tokens; everything, where the model's memory cannot forget a part. */
export function shorten(context: NativeContext, slot: Slot, kept: number, window: number): void {
  if (kept === slot.tokens.length) return
  const { sequence } = slot
  const cut = kept > 0 && context.removeTokenCellsFromSequence(sequence, kept, -1)
  // A model that looks at a sliding window needs the whole window before the next token.
  const whole = cut && context.getSequenceKvCacheMinPosition(sequence) <= Math.max(0, kept - window)
  if (!whole) context.disposeSequence(sequence)
  slot.tokens.length = whole ? kept : 0
  slot.exact = Math.min(slot.exact, slot.tokens.length)
}
