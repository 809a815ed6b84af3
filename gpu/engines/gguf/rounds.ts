import type { Exclusive } from './mutex.ts'
import type { Native, NativeContext } from './native.ts'
import { pieceFrom, prepareSlot, type Restore } from './prompt.ts'
import type { Slot, SlotChoice } from './slots.ts'

/** One answer being generated for one prompt. All methods are called between two batches. */
export interface Member {
  /** Chooses its slot. Called once, when it joins the rounds. */
  choose(): SlotChoice
  /** Set by `choose`. */
  readonly slot: Slot
  readonly prompt: readonly number[]
  /** Whether it needs separate batches, see prompt.ts. */
  readonly alone: boolean
  /** As in `GenerateWork`. */
  readonly owner?: string | undefined
  /** Called with the number of reused prompt tokens. */
  settled(reused: number): void
  /** Tokens to compute; `next` is how many of them are. */
  pending: readonly number[]
  next: number
  /** Whether it waits for its caller to accept the last text. */
  readonly blocked: boolean
  /** Whether it has ended, successfully or not. Then only `release` is called. */
  readonly over: boolean
  /** If set, all prompt tokens are computed; called with the logits indices of the tokens from position `from` on. */
  scoring: ((at: Uint32Array, from: number) => Promise<void>) | undefined
  /** Samples the next token from the logits at this index of the batch. */
  draw(at: number): Promise<number>
  /** Processes the sampled token: sets `pending` or ends. */
  accept(token: number): void
  /** Delivers new text to the caller. Runs while the next batch is computed. */
  tell(): void
  fail(error: unknown): void
  /** Gives its slot back, if it has chosen one. `broken`: the content of its memory is undefined. */
  release(broken: boolean): void
}

export interface RoundOptions {
  native: Native
  /** Tokens of a batch. */
  batchSize: number
  /** Maximum prompt tokens per step while other members are decoding. */
  piece: number
  /** Length of the sliding window in tokens; 0 if there is none. */
  window: number
  /** Computes a batch. */
  exclusive: Exclusive
  /** Loads saved conversations. */
  restore?: Restore | undefined
}

/** Tokens whose logits are kept at once when scoring a prompt; each has one number per vocabulary entry. */
const scoredAtOnce = 32
const onlyFirst = Uint32Array.of(0)
/** Holds the token of a decoding answer while it is added to the batch. */
const one = new Uint32Array(1)
const none = new Uint32Array()

/**
 * Computes tokens for all members, round by round. A round has one batch for the members that may share it, and one
 * batch for each other member. Text of a batch is delivered while the next batch is computed.
 */
export function openRounds({ native: { context }, batchSize, piece, window, exclusive, restore }: RoundOptions) {
  const members: Member[] = []
  const arrivals: Member[] = []
  const pendingReports: Member[] = []
  /** Work that must not run while a batch is computed. */
  const chores: (() => Promise<void>)[] = []
  let running = false
  let stopped: (() => void) | undefined

  function reportAll(): void {
    for (const member of pendingReports.splice(0)) member.tell()
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
      const choice = member.choose()
      try {
        const { prompt, alone, owner, scoring } = member
        const work = { prompt, piece, reproducible: alone, anew: scoring !== undefined, owner }
        member.settled(await prepareSlot(context, choice, work, window, restore))
        members.push(member)
      } catch (error) {
        drop(member, error)
      }
    }
  }

  /** Removes a member after an error of llama.cpp, which leaves its memory undefined. */
  function drop(member: Member, error: unknown): void {
    const at = members.indexOf(member)
    if (at >= 0) members.splice(at, 1)
    context.disposeSequence(member.slot.sequence)
    member.fail(error)
    member.release(true)
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
      const places = wants.map(({ member, amount }) => addTokens(context, member, amount))
      const computed = exclusive(() => context.decodeBatch())
      reportAll()
      await computed
      for (const { member, amount } of wants)
        for (let at = 0; at < amount; at++) member.slot.tokens.push(member.pending[member.next + at]!)
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
    // Requests of the same event loop turn join the first batch.
    await new Promise(setImmediate)
    for (;;) {
      dismiss()
      if (arrivals.length > 0) await welcome()
      await chores.shift()?.()
      const ready = members.filter(member => !member.over && !member.blocked)
      if (ready.length === 0) {
        reportAll()
        if (members.some(member => member.over) || arrivals.length > 0 || chores.length > 0) continue
        break
      }
      const wants = sharedBatch(ready, batchSize, piece)
      if (wants.length > 0) await compute(wants)
      let prompts = 0
      for (const member of ready) {
        if (!member.alone || member.over) continue
        const begun = member.slot.tokens.length
        // One piece of one prompt per round, so that decoding members wait no longer than that.
        if (begun < member.prompt.length - 1 && prompts++ > 0) continue
        await compute([{ member, amount: pieceFrom(begun, member.prompt.length, piece) }])
        if (begun < member.prompt.length - 1) member.slot.exact = member.slot.tokens.length
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
    /** Called after a change outside of a round: a caller disconnected or accepts text again. */
    wake,
    /** Runs work while no batch is computed; undefined if requests are there, which must not wait for it. */
    whileFree<Result>(work: () => Promise<Result>): Promise<Result | undefined> {
      return new Promise((resolve, reject) => {
        const isFree = () => members.length === 0 && arrivals.length === 0
        chores.push(async () => (isFree() ? work().then(resolve, reject) : resolve(undefined)))
        wake()
      })
    },
    /** Resolves when no computation is running; all members must have ended. */
    async idle(): Promise<void> {
      if (running) await new Promise<void>(resolve => (stopped = resolve))
    },
  }
}

export type Rounds = ReturnType<typeof openRounds>

/** Returns the answers that share the next batch, with their tokens. */
function sharedBatch(ready: readonly Member[], batchSize: number, piece: number) {
  const together = ready.filter(member => !member.alone)
  const needs = together.map(({ pending, next, scoring }) => ({
    remaining: pending.length - next,
    most: scoring ? scoredAtOnce : batchSize,
  }))
  const amounts = planBatch(needs, batchSize, piece)
  return (
    together
      .map((member, at) => ({ member, amount: amounts[at]! }))
      .filter(({ amount }) => amount > 0)
      // llama.cpp computes sequences together only if each one's number follows that of the one before.
      .toSorted((a, b) => a.member.slot.sequence - b.member.slot.sequence)
  )
}

/** Adds tokens of an answer to the batch. Returns their logits indices. */
function addTokens(context: NativeContext, member: Member, amount: number): Uint32Array {
  const { slot, pending, next } = member
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

/**
 * Returns the number of tokens of each member in the next batch. Members are in order of arrival; each has `remaining`
 * tokens to compute before the next one can be sampled, 1 while decoding, and takes at most `most` of a batch. A decoding member
 * always gets its token. Prompts share at most `room` tokens per step: the oldest gets half of it, so that it always
 * progresses, and the rest goes to the shortest first.
 */
export function planBatch(
  members: readonly { remaining: number; most: number }[],
  size: number,
  room: number,
): number[] {
  const amounts: number[] = members.map(({ remaining }) => (remaining === 1 ? 1 : 0))
  const answering = amounts.reduce((sum, amount) => sum + amount, 0)
  const prompts = members.map((_, at) => at).filter(at => members[at]!.remaining > 1)
  // Without decoding members there is no reason to keep steps short.
  let left = Math.min(size - answering, answering > 0 ? room : size)
  const assign = (at: number, share: number) => {
    const { remaining, most } = members[at]!
    const amount = Math.min(Math.min(remaining, most) - amounts[at]!, share)
    amounts[at]! += amount
    left -= amount
  }
  const [oldest] = prompts
  if (oldest === undefined || left <= 0) return amounts
  assign(oldest, Math.ceil(left / 2))
  for (const at of prompts.toSorted((a, b) => members[a]!.remaining - members[b]!.remaining)) assign(at, left)
  return amounts
}
