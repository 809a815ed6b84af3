import { Failure } from '../../../core/failure.ts'

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
  /** Whether an answer has it. */
  held: boolean
}

/**
 * A slot, the slot that contains the longest prefix of the prompt (the same one, or another to copy from), and the slot
 * that the conversation in `slot` moves to, if it is worth keeping.
 */
export interface SlotChoice {
  slot: Slot
  source: Slot
  keep?: Slot | undefined
}

interface Candidate {
  free: boolean
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
 * `worth` tokens are common. `keep`: where the conversation in the chosen slot goes, so that the one that is lost is the
 * least recently used. `moved`: whether `source` is no longer needed.
 */
export function chooseSlot(slots: readonly Candidate[], worth: number) {
  const free = slots.map((_, at) => at).filter(at => slots[at]!.free)
  const byAge = free.toSorted((a, b) => slots[a]!.usedAt - slots[b]!.usedAt)
  const neighbours = (at: number) => [at - 1, at + 1].filter(next => slots[next]?.free === false).length
  const best = byAge.reduce((chosen, at) => (neighbours(at) > neighbours(chosen) ? at : chosen))
  const likest = [...byAge, ...slots.keys()].reduce((chosen, at) =>
    slots[at]!.common > slots[chosen]!.common ? at : chosen,
  )
  const { common, length } = slots[likest]!
  const same = slots[likest]!.free && common > 0 && common * 2 >= length
  if (same && neighbours(likest) >= Math.min(1, neighbours(best))) return { slot: likest, source: likest, moved: false }
  const source = common >= worth && common > slots[best]!.common ? likest : best
  const keep = byAge.find(at => at !== best && at !== source && slots[at]!.usedAt < slots[best]!.usedAt)
  return {
    slot: best,
    source,
    keep: slots[best]!.length >= worth ? keep : undefined,
    moved: same && source === likest && source !== best,
  }
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
  const slots = Array.from(
    { length: count },
    (_, sequence): Slot => ({ sequence, tokens: [], usedAt: 0, exact: 0, held: false }),
  )
  const waiting: { prompt: readonly number[]; accept: (place: SlotChoice) => void }[] = []
  let clock = 0

  function place(prompt: readonly number[]): SlotChoice {
    const chosen = chooseSlot(
      slots.map(slot => ({
        free: !slot.held,
        length: slot.tokens.length,
        common: commonStart(slot.tokens, prompt),
        usedAt: slot.usedAt,
      })),
      worth,
    )
    const slot = slots[chosen.slot]!
    const source = slots[chosen.source]!
    slot.held = true
    if (chosen.moved) source.usedAt = 0
    return { slot, source, keep: slots[chosen.keep ?? -1] }
  }

  return {
    /**
     * Waits for a slot for the prompt; the caller must release it. With `admitted` (further answers to an accepted
     * prompt) the queue limit does not apply. Throws Failure `queue_full`, or the signal's reason.
     */
    take(prompt: readonly number[], signal: AbortSignal, admitted = false): Promise<SlotChoice> {
      if (signal.aborted) return Promise.reject(signal.reason as Error)
      if (slots.some(slot => !slot.held)) return Promise.resolve(place(prompt))
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
      slot.held = false
      const next = waiting.shift()
      if (next) next.accept(place(next.prompt))
    },
    get waiting(): number {
      return waiting.length
    },
    get free(): number {
      return slots.filter(slot => !slot.held).length
    },
  }
}

export type Slots = ReturnType<typeof openSlots>
