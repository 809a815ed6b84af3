/** A slot of an engine, as far as its content is known. */
export interface SlotCandidate {
  free: boolean
  /** Bytes of the prompt that it has computed, and how many of them at the start the new prompt has too. */
  length: number
  common: number
  /** Order number of its last request; 0 if it had none. */
  usedAt: number
}

/**
 * Chooses a free slot for a prompt: the one that has most of it, if that is at least half of what the slot has, as in a
 * conversation that goes on; else the least recently used one. Undefined if none is free. Pure.
 */
export function chooseSlot<Candidate extends SlotCandidate>(slots: readonly Candidate[]): Candidate | undefined {
  const free = slots.filter(slot => slot.free)
  const [likest] = free.toSorted((a, b) => b.common - a.common || b.usedAt - a.usedAt)
  if (likest && likest.common > 0 && likest.common * 2 >= likest.length) return likest
  return free.toSorted((a, b) => a.usedAt - b.usedAt)[0]
}
