import { Failure } from '../../../core/failure.ts'

/** One place in the context: the memory of one conversation. Whoever holds it is alone with it. */
export interface Slot {
  /** The number under which llama.cpp knows it. */
  readonly sequence: number
  /** What is in its memory, in order. */
  tokens: number[]
  /** When it was last given back; 0 for never. Only the order counts. */
  usedAt: number
  /** How many tokens at its start were evaluated as a reproducible request evaluates them, see prompt.ts. */
  exact: number
}

/** A slot, and the one whose memory holds most of the prompt's beginning: itself, or another to copy from. */
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
 * Which free slot a prompt goes to and which slot's memory it goes on from. The slot with the longest common
 * beginning is taken itself where little else would be lost: it is the same conversation. Otherwise the prompt gets
 * the free slot that nobody has used for longest, and a copy, where `worth` tokens or more are common.
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

/** How many tokens at their start both have. */
export function commonStart(a: readonly number[], b: readonly number[]): number {
  const most = Math.min(a.length, b.length)
  let at = 0
  while (at < most && a[at] === b[at]) at++
  return at
}

export interface SlotOptions {
  count: number
  /** How many may wait before more are refused. */
  queue: number
  /** Common tokens from which a copy is worth its time. */
  worth: number
}

/** The slots of a context, and whoever waits for one, first come first served. */
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
     * A slot for the prompt, for as long as the caller keeps it. `admitted` is for another answer to a prompt that was
     * let in already: it waits, however many do. Throws Failure `queue_full`, or the signal's reason when that is first.
     */
    take(prompt: readonly number[], signal: AbortSignal, admitted = false): Promise<SlotChoice> {
      if (signal.aborted) return Promise.reject(signal.reason as Error)
      if (free.size > 0) return Promise.resolve(place(prompt))
      if (!admitted && waiting.length >= queue)
        return Promise.reject(
          new Failure('queue_full', `${queue} requests already wait for this engine. Try again in a moment.`, {
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
