import { type LoadedAdapter, openAdapterUse } from './adapters.ts'
import type { GuessLength, GuessRate } from './guess-length.ts'
import type { Guesses } from './guesses.ts'
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
  readonly adapter?: LoadedAdapter | undefined
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
  /** How its answer may continue, if that is guessed, and how often that was right. */
  readonly guesses?: Pick<Guesses, 'next'> & { rate: GuessRate }
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
  /** How many tokens are guessed; absent if none are. */
  guessLength?: GuessLength | undefined
}

/** What a member gets of the next batch: so many of its pending tokens, and after the last of them what is guessed to follow. */
interface Want {
  member: Member
  amount: number
  guess: readonly number[]
}

/** Tokens whose logits are kept at once when scoring a prompt; each has one number per vocabulary entry. */
const scoredAtOnce = 32
const onlyFirst = Uint32Array.of(0)
/** Holds the token of a decoding answer while it is added to the batch. */
const one = new Uint32Array(1)
const none = new Uint32Array()

/**
 * Computes tokens for all members, round by round. A round has one batch for the members of each adapter that may share it,
 * and one batch for each other member. Text of a batch is delivered while the next batch is computed.
 */
export function openRounds({
  native: { context },
  batchSize,
  piece,
  window,
  exclusive,
  restore,
  guessLength,
}: RoundOptions) {
  const members: Member[] = []
  const arrivals: Member[] = []
  const pendingReports: Member[] = []
  /** Work that must not run while a batch is computed. */
  const chores: (() => Promise<void>)[] = []
  const useAdapter = openAdapterUse(context)
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
        const { prompt, alone, owner, scoring, adapter } = member
        const work = { prompt, piece, reproducible: alone, anew: scoring !== undefined, owner, adapter: adapter?.key }
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

  /** Samples what follows the tokens of a member, and goes on while it is what was guessed. */
  async function draw({ member, amount, guess }: Want, at: Uint32Array): Promise<void> {
    const from = member.next
    member.next += amount
    if (member.scoring) await member.scoring(at, from)
    if (member.next < member.pending.length) return
    let right = 0
    for (let place = at.length - 1 - guess.length; !member.over; place++) {
      const token = await member.draw(at[place]!)
      if (member.over) break
      member.accept(token)
      if (token !== guess[right]) {
        if (guess.length > 0) member.guesses!.rate.tried(guess.length, right)
        break
      }
      // It has been computed already.
      member.slot.tokens.push(token)
      right++
    }
    pendingReports.push(member)
  }

  async function compute(wants: readonly Want[]): Promise<void> {
    const begun = performance.now()
    const tokens = wants.reduce((sum, { amount, guess }) => sum + amount + guess.length, 0)
    try {
      useAdapter(wants[0]!.member.adapter)
      context.initBatch(tokens)
      const places = wants.map(want => addTokens(context, want))
      const computed = exclusive(() => context.decodeBatch())
      reportAll()
      await computed
      for (const { member, amount } of wants)
        for (let at = 0; at < amount; at++) member.slot.tokens.push(member.pending[member.next + at]!)
      await Promise.all(
        wants.map((want, at) => draw(want, places[at]!).catch((error: unknown) => drop(want.member, error))),
      )
      // Not before all have sampled: guesses that were wrong leave the memory.
      for (const { member, guess } of wants) if (guess.length > 0 && members.includes(member)) forget(member)
      if (wants.every(({ amount }) => amount === 1)) guessLength?.measured(tokens, performance.now() - begun)
    } catch (error) {
      for (const { member } of wants) drop(member, error)
    }
  }

  function forget({ slot }: Member): void {
    const { sequence, tokens } = slot
    if (!context.removeTokenCellsFromSequence(sequence, tokens.length, -1))
      throw new Error('The memory of this model cannot forget a wrong guess.')
  }

  /** Adds guesses to a batch in which all answers are past their prompts: a prompt makes a round long already. */
  function withGuesses(wants: readonly Omit<Want, 'guess'>[]): Want[] {
    const planned = wants.map(want => ({ ...want, guess: [] as readonly number[] }))
    if (!guessLength || wants.some(({ amount }) => amount > 1)) return planned
    let tokens = wants.length
    for (const want of planned) {
      const { guesses, scoring } = want.member
      if (!guesses || scoring) continue
      const length = Math.min(batchSize - tokens, guessLength.best(tokens - 1, guesses.rate.value))
      want.guess = guesses.next(length)
      if (length === 0 && guesses.next(1).length > 0) guesses.rate.skipped()
      tokens += want.guess.length
    }
    return planned
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
      for (const adapter of new Set(ready.map(one => one.adapter))) {
        const wants = sharedBatch(ready, adapter, batchSize, piece)
        if (wants.length > 0) await compute(withGuesses(wants))
      }
      let prompts = 0
      for (const member of ready) {
        if (!member.alone || member.over) continue
        const begun = member.slot.tokens.length
        // One piece of one prompt per round, so that decoding members wait no longer than that.
        if (begun < member.prompt.length - 1 && prompts++ > 0) continue
        await compute([{ member, amount: pieceFrom(begun, member.prompt.length, piece), guess: [] }])
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

/** Returns the answers of an adapter that share the next batch, with their tokens. */
function sharedBatch(ready: readonly Member[], adapter: LoadedAdapter | undefined, batchSize: number, piece: number) {
  const together = ready.filter(member => !member.alone && !member.over && member.adapter === adapter)
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

/** Adds tokens of an answer to the batch, and those that are guessed to follow. Returns their logits indices. */
function addTokens(context: NativeContext, { member, amount, guess }: Want): Uint32Array {
  const { slot, pending, next } = member
  if (amount === 1) one[0] = pending[next]!
  const tokens =
    amount === 1 && guess.length === 0 ? one : Uint32Array.from([...pending.slice(next, next + amount), ...guess])
  const complete = next + amount === pending.length
  const logits = member.scoring
    ? tokens.map((_, at) => at)
    : complete
      ? tokens.length === 1
        ? onlyFirst
        : Uint32Array.from({ length: 1 + guess.length }, (_, at) => amount - 1 + at)
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
