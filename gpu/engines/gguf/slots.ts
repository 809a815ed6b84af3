import { Failure } from '../../../core/failure.ts'
import { permit } from '../../../core/media/semaphore.ts'

/** One sequence of the context: the memory of one conversation, held by at most one answer. */
export interface Slot {
  /** llama.cpp's sequence id. */
  readonly sequence: number
  /** The tokens in its memory, in order. */
  tokens: number[]
  /** Order number of its last release; 0 if never used, or if another slot has its conversation now. */
  usedAt: number
  /** Leading tokens that were computed as for a reproducible request, see prompt.ts. */
  exact: number
  /** Whose conversation it has, as in `GenerateWork.owner`; undefined if it must not be saved. */
  owner?: string | undefined
  /** The adapter with which its memory was computed; undefined for the model alone. */
  adapter?: string | undefined
  /** How the answer that has it is computed; false if none has it. */
  held: 'together' | 'alone' | false
}

export interface SlotChoice {
  slot: Slot
  /** The slot that contains the longest prefix of the prompt: the same one, or another to copy from. */
  source: Slot
  /** Where the conversation in `slot` moves to, if it is worth keeping. */
  keep?: Slot
  /** Whether `source` is no longer needed after the copy. */
  moved?: boolean
}

interface Candidate {
  free: boolean
  /** Whether its answer is computed together with that of the prompt. */
  joins: boolean
  /** Tokens in its memory, and how many of them at its start the prompt has too. */
  length: number
  common: number
  usedAt: number
}

/**
 * Chooses a free slot for a prompt, and the slot whose memory it reuses. llama.cpp computes a batch in as many steps as
 * its slots form rows without a gap (sixteen answers in scattered slots take four times as long), so the prompt gets the
 * slot with most neighbours that are computing; of equal ones, as when none is, the least recently used. The same
 * conversation continues in its slot if that joins a row, and is copied otherwise. Other slots are copied from if at least
 * `worth` tokens are common. The conversation that is lost is the least recently used; no conversation moves if one would
 * be lost that is among the last answers, as many as there are slots.
 */
export function chooseSlot(slots: readonly Candidate[], worth: number) {
  const free = slots.map((_, at) => at).filter(at => slots[at]!.free)
  const byAge = free.toSorted((a, b) => slots[a]!.usedAt - slots[b]!.usedAt)
  const neighbours = (at: number) => [at - 1, at + 1].filter(next => slots[next]?.joins).length
  const best = byAge.reduce((chosen, at) => (neighbours(at) > neighbours(chosen) ? at : chosen))
  const likest = [...byAge, ...slots.keys()].reduce((chosen, at) =>
    slots[at]!.common > slots[chosen]!.common ? at : chosen,
  )
  const { common, length } = slots[likest]!
  const same = slots[likest]!.free && common > 0 && common * 2 >= length
  const source = common >= worth && common > slots[best]!.common ? likest : best
  const older = byAge.find(at => at !== best && at !== source && slots[at]!.usedAt < slots[best]!.usedAt)
  const keep = slots[best]!.length >= worth ? older : undefined
  const lost = slots[keep ?? best]!
  const newest = Math.max(...slots.map(({ usedAt }) => usedAt))
  const isRecent = lost.usedAt > 0 && lost.length >= worth && newest - lost.usedAt < slots.length
  if (same && (isRecent || neighbours(likest) >= Math.min(1, neighbours(best))))
    return { slot: likest, source: likest, keep: undefined, moved: false }
  return { slot: best, source, keep, moved: same && source !== best }
}

/** Length of the common prefix. */
export function commonStart(a: readonly number[], b: readonly number[]): number {
  const most = Math.min(a.length, b.length)
  let at = 0
  while (at < most && a[at] === b[at]) at++
  return at
}

/**
 * The slots of a context with a FIFO queue of at most `queue` waiting requests. `worth`: minimum common tokens for a copy.
 */
export function openSlots({ count, queue, worth }: { count: number; queue: number; worth: number }) {
  const slots = Array.from(
    { length: count },
    (_, sequence): Slot => ({ sequence, tokens: [], usedAt: 0, exact: 0, held: false }),
  )
  const waiting: (() => void)[] = []
  let free = count
  let clock = 0

  return {
    /**
     * Waits until an answer may have a slot; the caller must give it back. With `admitted` (further answers to an
     * accepted prompt) the queue limit does not apply. Throws Failure `queue_full`, or the signal's reason.
     */
    async take(signal: AbortSignal, admitted = false): Promise<void> {
      signal.throwIfAborted()
      if (free > 0) return void free--
      if (!admitted && waiting.length >= queue)
        throw new Failure('queue_full', `${queue} requests already wait for this engine. Try again later.`, {
          retryAfterMs: 1000,
        })
      await permit(waiting, signal)
    },
    /**
     * Chooses the slot of an answer that may have one; `alone`: it is computed in separate batches. It reuses only what was
     * computed with the same adapter. Called right before the slot is prepared, because each preparation moves conversations.
     */
    choose(prompt: readonly number[], alone: boolean, adapter?: string): SlotChoice {
      const candidates = slots.map(({ held, tokens, usedAt, adapter: used }) => ({
        free: !held,
        joins: held === 'together' && !alone && used === adapter,
        length: tokens.length,
        common: used === adapter ? commonStart(tokens, prompt) : 0,
        usedAt,
      }))
      const { slot: at, source, keep, moved } = chooseSlot(candidates, worth)
      const slot = slots[at]!
      slot.held = alone ? 'alone' : 'together'
      return { slot, source: slots[source]!, keep: slots[keep ?? -1], moved }
    },
    /** Must be called exactly once for every `take`, with the slot if one was chosen. */
    give(slot?: Slot): void {
      if (slot) {
        slot.usedAt = ++clock
        slot.held = false
      }
      const next = waiting.shift()
      if (next) next()
      else free++
    },
    /** All of them, in order of their sequences. */
    all: slots as readonly Slot[],
    get waiting(): number {
      return waiting.length
    },
    get free(): number {
      return free
    },
  }
}

export type Slots = ReturnType<typeof openSlots>
