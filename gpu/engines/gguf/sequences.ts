import type { LlamaContext, LlamaContextSequence, Token } from 'node-llama-cpp'
import { Failure } from '../../../core/failure.ts'

/** One place in the context: the memory of one conversation. Whoever holds it is alone with it. */
export interface Slot {
  readonly sequence: LlamaContextSequence
  /** When it was last given back; 0 for never. Only the order counts. */
  usedAt: number
  /** How many tokens at its start were evaluated as a reproducible request evaluates them, see prompt.ts. */
  exact: number
}

/**
 * Which free slot a prompt goes to: the one that already holds most of its beginning, if that is at least half of the
 * prompt, or else the one that nobody has used for longest, so that other conversations keep their memory.
 */
export function chooseSlot(slots: readonly { common: number; usedAt: number }[], promptLength: number): number {
  const best = (better: (a: { common: number; usedAt: number }, b: { common: number; usedAt: number }) => boolean) =>
    slots.reduce((chosen, slot, at) => (better(slot, slots[chosen]!) ? at : chosen), 0)
  const likest = best((a, b) => a.common > b.common || (a.common === b.common && a.usedAt < b.usedAt))
  return slots[likest] && slots[likest].common * 2 >= promptLength ? likest : best((a, b) => a.usedAt < b.usedAt)
}

/** The context would otherwise drop the beginning of a conversation in silence. We check before, so this never runs. */
const neverShift = {
  strategy: () => {
    throw new Error('The context is full.')
  },
}

/** The slots of a context, and whoever waits for one, first come first served. At most `queue` may wait. */
export function openSequences(context: LlamaContext, queue: number) {
  const free: Slot[] = Array.from({ length: context.totalSequences }, () => ({
    sequence: context.getSequence({ contextShift: neverShift }),
    usedAt: 0,
    exact: 0,
  }))
  const waiting: { accept: (slot: Slot) => void }[] = []
  let clock = 0

  return {
    /**
     * A slot for the prompt, for as long as the caller keeps it. Throws Failure `queue_full`, or the signal's reason
     * when that comes first.
     */
    take(prompt: readonly Token[], signal: AbortSignal): Promise<Slot> {
      if (signal.aborted) return Promise.reject(signal.reason as Error)
      if (free.length > 0) {
        const common = ({ sequence, usedAt }: Slot) => ({
          common: sequence.compareContextTokens(prompt as Token[]).firstDifferentIndex,
          usedAt,
        })
        return Promise.resolve(free.splice(chooseSlot(free.map(common), prompt.length), 1)[0]!)
      }
      if (waiting.length >= queue)
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
          accept(slot: Slot) {
            signal.removeEventListener('abort', leave)
            resolve(slot)
          },
        }
        waiting.push(entry)
        signal.addEventListener('abort', leave, { once: true })
      })
    },
    /** Must be called exactly once for every slot taken. */
    give(slot: Slot): void {
      slot.usedAt = ++clock
      const next = waiting.shift()
      if (next) next.accept(slot)
      else free.push(slot)
    },
    get waiting(): number {
      return waiting.length
    },
  }
}

export type Sequences = ReturnType<typeof openSequences>
