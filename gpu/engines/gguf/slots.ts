import { Failure } from '../../../core/failure.ts'

/** One sequence of the context: the memory of one conversation, held by at most one answer. */
export interface Slot {
  /** llama.cpp's sequence id. */
  readonly sequence: number
  /** The tokens in its memory, in order. */
  tokens: number[]
  /** Order number of its last release; 0 if never used. */
  usedAt: number
  /** Leading tokens that were computed as for a reproducible request, see prompt.ts. */
  exact: number
}

/** A slot, and the slot that contains the longest prefix of the prompt: the same one, or another to copy from. */
export interface SlotChoice {
  slot: Slot
  source: Slot
}

interface Candidate {
  free: boolean
  /** Tokens in its memory, and how many of them at its start the prompt has too. */
  length: number
  common: number
  usedAt: number
}

/**
 * Chooses a free slot for a prompt and the slot whose memory it reuses. The slot with the longest common prefix is
 * taken itself if little else would be lost (the same conversation). Otherwise the prompt gets the least recently used
 * free slot, with a copy if at least `worth` tokens are common.
 */
export function chooseSlot(slots: readonly Candidate[], worth: number): { slot: number; source: number } {
  const best = (better: (a: Candidate, b: Candidate) => boolean, from: number) =>
    slots.reduce((chosen, slot, at) => (better(slot, slots[chosen]!) ? at : chosen), from)
  const oldest = best(
    (a, b) => a.free && a.usedAt < b.usedAt,
    slots.findIndex(slot => slot.free),
  )
  const likest = best(
    (a, b) =>
      a.common > b.common || (a.common === b.common && ((a.free && !b.free) || (a.free && a.usedAt < b.usedAt))),
    oldest,
  )
  const { free, common, length } = slots[likest]!
  if (free && common > 0 && common * 2 >= length) return { slot: likest, source: likest }
  return { slot: oldest, source: common >= worth && common > slots[oldest]!.common ? likest : oldest }
}

/** Length of the common prefix. */
export function commonStart(a: readonly number[], b: readonly number[]): number {
  const most = Math.min(a.length, b.length)
  let at = 0
  while (at < most && a[at] === b[at]) at++
  return at
}

export interface SlotOptions {
  count: number
  /** Maximum number of waiting requests. */
  queue: number
  /** Minimum common tokens for a copy. */
  worth: number
}

/** The slots of a context with a FIFO queue of waiting requests. */
export function openSlots({ count, queue, worth }: SlotOptions) {
  const slots: Slot[] = Array.from({ length: count }, (_, sequence) => ({ sequence, tokens: [], usedAt: 0, exact: 0 }))
  const free = new Set(slots)
  const waiting: { prompt: readonly number[]; accept: (place: SlotChoice) => void }[] = []
  let clock = 0

  function place(prompt: readonly number[]): SlotChoice {
    const { slot, source } = chooseSlot(
      slots.map(slot => ({
        free: free.has(slot),
        length: slot.tokens.length,
        common: commonStart(slot.tokens, prompt),
        usedAt: slot.usedAt,
      })),
      worth,
    )
    free.delete(slots[slot]!)
    return { slot: slots[slot]!, source: slots[source]! }
  }

  return {
    /**
     * Waits for a slot for the prompt; the caller must release it. With `admitted` (further answers to an accepted
     * prompt) the queue limit does not apply. Throws Failure `queue_full`, or the signal's reason.
     */
    take(prompt: readonly number[], signal: AbortSignal, admitted = false): Promise<SlotChoice> {
      if (signal.aborted) return Promise.reject(signal.reason as Error)
      if (free.size > 0) return Promise.resolve(place(prompt))
      if (!admitted && waiting.length >= queue)
        return Promise.reject(
          new Failure('queue_full', `${queue} requests already wait for this engine. Try again later.`, {
            retryAfterMs: 1000,
          }),
        )
      return new Promise((resolve, reject) => {
        const leave = () => {
          waiting.splice(waiting.indexOf(entry), 1)
          reject(signal.reason as Error)
        }
        const entry = {
          prompt,
          accept(given: SlotChoice) {
            signal.removeEventListener('abort', leave)
            resolve(given)
          },
        }
        waiting.push(entry)
        signal.addEventListener('abort', leave, { once: true })
      })
    },
    /** Must be called exactly once for every slot taken. */
    give(slot: Slot): void {
      slot.usedAt = ++clock
      free.add(slot)
      const next = waiting.shift()
      if (next) next.accept(place(next.prompt))
    },
    get waiting(): number {
      return waiting.length
    },
    get free(): number {
      return free.size
    },
  }
}

export type Slots = ReturnType<typeof openSlots>
