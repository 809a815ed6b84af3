import type { NativeContext } from './native.ts'
import { commonStart, type Slot, type SlotChoice } from './slots.ts'

/**
 * The last bits of a matrix product depend on how many tokens are computed together. Over some hundred tokens this can
 * change a sampled token (measured: 38 of 160 seeded answers differed under load). So a request with a seed is computed
 * in separate batches of a fixed size and reuses only tokens computed that way. Other requests share batches and
 * reuse any common tokens.
 */
export interface PromptWork {
  prompt: readonly number[]
  /** Tokens of a reproducible prompt per step. */
  piece: number
  reproducible: boolean
  /** Whether nothing may be reused. */
  anew?: boolean
  /** As in `Slot`. */
  owner?: string | undefined
  adapter?: string | undefined
}

/**
 * Replaces the content of a slot by a saved conversation of the owner, if it has enough more reusable tokens of the prompt
 * than `have`. Resolves with whether it did.
 */
export type Restore = (slot: Slot, owner: string, work: PromptWork & { have: number }) => Promise<boolean>

/**
 * Number of a slot's tokens that a prompt may reuse. `common`: leading tokens shared with the prompt; `exact`: leading
 * tokens computed in fixed pieces; `wanted`: tokens of the prompt before its last one.
 */
export function reusableTokens(common: number, exact: number, wanted: number, piece: number, reproducible: boolean) {
  if (!reproducible) return Math.min(common, wanted)
  if (common >= wanted && exact === wanted) return wanted
  return wholePieces(Math.min(common, exact, wanted), piece)
}

/** The value of `exact` after all but the first `kept` tokens were removed: a partly removed piece no longer counts. */
export const exactAfter = (exact: number, kept: number, piece: number): number =>
  kept >= exact ? exact : wholePieces(kept, piece)

const wholePieces = (tokens: number, piece: number) => Math.floor(tokens / piece) * piece

/** Number of tokens that a reproducible prompt computes next: one piece; the last token is computed separately. */
export const pieceFrom = (position: number, promptLength: number, piece: number): number =>
  position >= promptLength - 1 ? 1 : Math.min(piece, promptLength - 1 - position)

/**
 * Moves the conversation in the slot to where it is kept, and makes the slot contain the longest reusable prefix of the
 * prompt and nothing else. Returns its length, which is less than the prompt's because the last token is always computed.
 * Must not run while a batch is being computed.
 */
export async function prepareSlot(
  context: NativeContext,
  { slot, source, keep, moved }: SlotChoice,
  work: PromptWork,
  window: number,
  restore?: Restore,
) {
  const { prompt, piece, reproducible, anew = false, owner, adapter } = work
  const common = (one: Slot) => (one.adapter === adapter ? commonStart(one.tokens, prompt) : 0)
  const reusable = (one: Slot) => reusableTokens(common(one), one.exact, prompt.length - 1, piece, reproducible)
  if (keep) {
    await copy(context, slot, keep)
    keep.usedAt = slot.usedAt
  }
  const have = Math.max(reusable(slot), reusable(source))
  const isRestored = !anew && owner !== undefined && (await restore?.(slot, owner, { ...work, have }))
  if (!anew && !isRestored && source !== slot && common(source) > common(slot)) {
    await copy(context, source, slot)
    if (moved) source.usedAt = 0
  }
  const kept = anew ? 0 : reusable(slot)
  slot.exact = exactAfter(slot.exact, kept, piece)
  shorten(context, slot, kept, window)
  slot.owner = owner
  slot.adapter = adapter
  return slot.tokens.length
}

async function copy(context: NativeContext, source: Slot, target: Slot): Promise<void> {
  target.tokens = []
  try {
    await context.copySequenceStateFromOtherSequence(target.sequence, source.sequence)
  } catch (error) {
    // Nothing may reuse or continue what a failed copy leaves.
    context.disposeSequence(target.sequence)
    throw error
  }
  target.tokens = source.tokens.slice()
  target.exact = source.exact
  target.owner = source.owner
  target.adapter = source.adapter
}

/** Removes all but the first `kept` tokens, or everything if the model's memory cannot remove a part. */
function shorten(context: NativeContext, slot: Slot, kept: number, window: number): void {
  if (kept === slot.tokens.length) return
  const { sequence } = slot
  const cut = kept > 0 && context.removeTokenCellsFromSequence(sequence, kept, -1)
  // A model that looks at a sliding window needs the whole window before the next token.
  const whole = cut && context.getSequenceKvCacheMinPosition(sequence) <= Math.max(0, kept - window)
  if (!whole) context.disposeSequence(sequence)
  slot.tokens.length = whole ? kept : 0
  slot.exact = Math.min(slot.exact, slot.tokens.length)
}
