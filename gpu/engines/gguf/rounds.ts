import { planBatch } from './batch.ts'
import type { Exclusive } from './mutex.ts'
import type { Native } from './native.ts'
import { pieceFrom, prepareSlot } from './prompt.ts'
import type { SlotChoice } from './slots.ts'

/** Someone whose tokens are computed: one answer to one prompt. Everything here happens between two batches. */
export interface Member {
  readonly slotChoice: SlotChoice
  readonly prompt: readonly number[]
  /** Is computed alone in its batch, see prompt.ts. */
  readonly alone: boolean
  /** Hears from where on the prompt is computed. */
  settled(reused: number): void
  /** Tokens to compute; `next` is how many of them are. */
  pending: readonly number[]
  next: number
  /** Whether it waits for its caller to take what was said. */
  readonly blocked: boolean
  /** Whether it has ended, well or not. It is not called again, but for `release`. */
  readonly over: boolean
  /** While it is there, every token is computed anew, and it hears where the logits of those from a place on are. */
  scoring: ((at: Uint32Array, from: number) => Promise<void>) | undefined
  /** Draws the next token from the logits at this place of the batch. */
  draw(at: number): Promise<number>
  /** Takes the token that was drawn; sets what is pending, or is over. */
  accept(token: number): void
  /** Tells the caller what was said since the last time. Runs while the next batch is computed. */
  tell(): void
  fail(error: unknown): void
  /** Gives its place back. `broken` when nobody knows what is in its memory. */
  release(broken: boolean): void
}

export interface RoundOptions {
  native: Native
  /** Tokens of a batch. */
  batchSize: number
  /** Tokens of prompts in one step while others are in the middle of an answer. */
  piece: number
  /** Tokens that the model looks back; 0 when there is no bound. */
  window: number
  /** Computes a batch. */
  exclusive: Exclusive
}

/** The logits of so many tokens are held at once where a prompt is scored; each is as large as the vocabulary. */
const scoredAtOnce = 32
const onlyFirst = Uint32Array.of(0)
const none = new Uint32Array()

/**
 * Computes for all members together, round by round. In a round all that may share a batch get one, and each that
 * must be alone gets one of its own. What was said in a batch is told while the next one is computed.
 */
export function openRounds({ native: { context }, batchSize, piece, window, exclusive }: RoundOptions) {
  const members: Member[] = []
  const arrivals: Member[] = []
  const one = new Uint32Array(1)
  let pendingReports: Member[] = []
  let running = false
  let stopped: (() => void) | undefined

  function reportAll(): void {
    const now = pendingReports
    pendingReports = []
    for (const member of now) member.tell()
  }

  function dismiss(): void {
    for (let at = members.length - 1; at >= 0; at--) {
      const member = members[at]!
      if (!member.over) continue
      members.splice(at, 1)
      member.release(false)
    }
  }

  async function welcome(): Promise<void> {
    for (const member of arrivals.splice(0)) {
      if (member.over) {
        member.release(false)
        continue
      }
      try {
        const { slotChoice, prompt, alone, scoring } = member
        const work = { prompt, piece, reproducible: alone, anew: scoring !== undefined }
        member.settled(await prepareSlot(context, slotChoice, work, window))
        members.push(member)
      } catch (error) {
        drop(member, error)
      }
    }
  }

  /** An error of llama.cpp: what it left in the memory is anybody's guess. */
  function drop(member: Member, error: unknown): void {
    const at = members.indexOf(member)
    if (at >= 0) members.splice(at, 1)
    context.disposeSequence(member.slotChoice.slot.sequence)
    member.fail(error)
    member.release(true)
  }

  /** Adds tokens to the batch. Gives where their logits will be. */
  function add(member: Member, amount: number): Uint32Array {
    const { slot } = member.slotChoice
    const { pending, next } = member
    if (amount === 1) one[0] = pending[next]!
    const tokens = amount === 1 ? one : Uint32Array.from(pending.slice(next, next + amount))
    const complete = next + amount === pending.length
    const logits = member.scoring
      ? tokens.map((_, at) => at)
      : complete
        ? amount === 1
          ? onlyFirst
          : Uint32Array.of(amount - 1)
        : none
    return context.addToBatch(slot.sequence, slot.tokens.length, tokens, logits)
  }

  async function draw(member: Member, amount: number, at: Uint32Array): Promise<void> {
    const from = member.next
    member.next += amount
    if (member.scoring) await member.scoring(at, from)
    if (member.next < member.pending.length) return
    if (member.over) return void pendingReports.push(member)
    const token = await member.draw(at.at(-1)!)
    if (!member.over) member.accept(token)
    pendingReports.push(member)
  }

  async function compute(wants: readonly { member: Member; amount: number }[]): Promise<void> {
    try {
      context.initBatch(wants.reduce((sum, { amount }) => sum + amount, 0))
      const places = wants.map(({ member, amount }) => add(member, amount))
      const computed = exclusive(() => context.decodeBatch())
      reportAll()
      await computed
      for (const { member, amount } of wants)
        for (let at = 0; at < amount; at++) member.slotChoice.slot.tokens.push(member.pending[member.next + at]!)
      await Promise.all(
        wants.map(({ member, amount }, at) =>
          draw(member, amount, places[at]!).catch((error: unknown) => drop(member, error)),
        ),
      )
    } catch (error) {
      for (const { member } of wants) drop(member, error)
    }
  }

  async function run(): Promise<void> {
    // Whoever asks at the same moment shall be in the first batch too.
    await new Promise(setImmediate)
    for (;;) {
      dismiss()
      if (arrivals.length > 0) await welcome()
      const ready = members.filter(member => !member.over && !member.blocked)
      if (ready.length === 0) {
        reportAll()
        if (members.some(member => member.over) || arrivals.length > 0) continue
        break
      }
      const together = ready.filter(member => !member.alone)
      const amounts = planBatch(
        together.map(({ pending, next, scoring }) => ({
          remaining: pending.length - next,
          most: scoring ? scoredAtOnce : batchSize,
        })),
        batchSize,
        piece,
      )
      const wants = together.map((member, at) => ({ member, amount: amounts[at]! })).filter(({ amount }) => amount > 0)
      if (wants.length > 0) await compute(wants)
      let prompts = 0
      for (const member of ready) {
        if (!member.alone || member.over) continue
        const begun = member.slotChoice.slot.tokens.length
        // One piece of one prompt a round; whoever is in the middle of an answer waits for no more than that.
        if (begun < member.prompt.length - 1 && prompts++ > 0) continue
        await compute([{ member, amount: pieceFrom(begun, member.prompt.length, piece) }])
        if (begun < member.prompt.length - 1) member.slotChoice.slot.exact = member.slotChoice.slot.tokens.length
      }
    }
    running = false
    stopped?.()
  }

  function wake(): void {
    if (running) return
    running = true
    void run()
  }

  return {
    add(member: Member): void {
      arrivals.push(member)
      wake()
    },
    /** Something changed outside of a round: a caller left, or has room again. */
    wake,
    /** Resolves when nothing is being computed; there must be no members any more. */
    idle: (): Promise<void> =>
      running
        ? new Promise(resolve => {
            stopped = resolve
          })
        : Promise.resolve(),
  }
}

export type Rounds = ReturnType<typeof openRounds>
