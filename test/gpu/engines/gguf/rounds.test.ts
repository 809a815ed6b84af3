import { describe, expect, test, vi } from 'vitest'
import { Failure } from '../../../../core/failure.ts'
import { openGuessLength } from '../../../../gpu/engines/gguf/guess-length.ts'
import { noMutex, openMutex } from '../../../../gpu/engines/gguf/mutex.ts'
import type { Native } from '../../../../gpu/engines/gguf/native.ts'
import { prepareSlot } from '../../../../gpu/engines/gguf/prompt.ts'
import { type Member, openRounds, planBatch } from '../../../../gpu/engines/gguf/rounds.ts'
import { chooseSlot, commonStart, openSlots, type Slot, type Slots } from '../../../../gpu/engines/gguf/slots.ts'

const stays = new AbortController().signal
const taken = async (slots: Slots, admitted = false) => {
  await slots.take(stays, admitted)
  return slots.choose([], false)
}
const count = (length: number) => Array.from({ length }, (_, at) => at)

describe('a batch', () => {
  const plan = (remaining: number[], size = 64, room = 16) =>
    planBatch(
      remaining.map(remaining => ({ remaining, most: 1000 })),
      size,
      room,
    )
  test.each<[string, number[], number[]]>([
    ['each request in the middle of an answer gets a token', [1, 1, 1], [1, 1, 1]],
    ['a prompt alone fills the batch', [100], [64]],
    ['a prompt among others gets only the remaining tokens', [1, 100, 1], [1, 16, 1]],
    ['a short prompt comes before a long one, which still gets half', [1, 100, 5], [1, 11, 5]],
    ['a short prompt after two long ones', [1, 100, 90, 3], [1, 8, 5, 3]],
    ['prompts that fit are taken whole', [10, 20], [10, 20]],
    ['no requests', [], []],
  ])('%s', (_rule, remaining, expected) => expect(plan(remaining)).toEqual(expected))
  test('holds one token for each answer, even beyond the batch size', () =>
    expect(plan([...count(64).map(() => 1), 9])).toEqual([...count(64).map(() => 1), 0]))
  test('has at most the tokens that a request can take at once', () =>
    expect(planBatch([{ remaining: 100, most: 32 }], 64, 16)).toEqual([32]))
})

describe('slots', () => {
  const candidate = (common: number, length: number, usedAt: number, free = true) => ({
    common,
    length,
    usedAt,
    free,
    joins: !free,
  })
  test.each<[string, ReturnType<typeof candidate>[], number, number]>([
    ['the same conversation continues in its slot', [candidate(90, 100, 9), candidate(0, 0, 0)], 0, 0],
    ['another conversation with the same prefix is copied', [candidate(90, 900, 9), candidate(0, 50, 1)], 1, 0],
    ['so is one that is still running', [candidate(90, 100, 9, false), candidate(3, 50, 1)], 1, 0],
    ['a short prefix is not copied', [candidate(9, 900, 9), candidate(0, 50, 1)], 1, 1],
    ['of equally good slots the least recently used', [candidate(90, 90, 4), candidate(90, 90, 2)], 1, 1],
    ['a free slot rather than a busy one', [candidate(90, 100, 1, false), candidate(90, 100, 4)], 1, 1],
    ['without a common prefix the least recently used', [candidate(0, 40, 4), candidate(0, 40, 2)], 1, 1],
    ['the only free slot', [candidate(0, 10, 1, false), candidate(0, 700, 7)], 1, 1],
  ])('%s', (_rule, slots, slot, source) => expect(chooseSlot(slots, 16)).toMatchObject({ slot, source }))

  const busy = candidate(0, 100, 1, false)
  const alone = { ...busy, joins: false }
  test.each<[string, ReturnType<typeof candidate>[], Partial<ReturnType<typeof chooseSlot>>]>([
    [
      'beside one that computes, also if it was used later',
      [candidate(0, 5, 1), candidate(0, 5, 9), busy],
      { slot: 1 },
    ],
    ['between two rather than beside one', [candidate(0, 5, 1), busy, candidate(0, 5, 9), busy], { slot: 2 }],
    [
      'what it remembers moves to the least recently used slot',
      [candidate(0, 90, 2), candidate(0, 90, 3), candidate(0, 90, 9), busy],
      { slot: 2, source: 2, keep: 0 },
    ],
    [
      'what is short is not worth a move, nor what was used least recently',
      [candidate(0, 90, 2), candidate(0, 9, 9), busy, candidate(0, 90, 1)],
      { slot: 3, keep: undefined },
    ],
    [
      'a conversation apart from the others is copied beside them, and its own slot is needed no longer',
      [candidate(90, 100, 9), candidate(0, 90, 2), candidate(0, 90, 4), busy],
      { slot: 2, source: 0, keep: 1, moved: true },
    ],
    [
      'but it stays where the move would cost a conversation of the last few answers',
      [candidate(90, 100, 5), candidate(0, 90, 2), candidate(0, 90, 4), busy],
      { slot: 0, source: 0, keep: undefined, moved: false },
    ],
    [
      'one that is computed in separate batches is no neighbour',
      [candidate(0, 5, 1), candidate(0, 5, 9), alone],
      { slot: 0 },
    ],
    [
      'one beside the others stays, even if another slot is between two',
      [candidate(90, 100, 9), busy, candidate(0, 90, 2), busy],
      { slot: 0, source: 0, moved: false },
    ],
    [
      'a short conversation apart from the others is computed again beside them',
      [candidate(9, 10, 9), candidate(0, 90, 2), candidate(0, 90, 4), busy],
      { slot: 2, source: 2, moved: false },
    ],
  ])('while others compute: %s', (_rule, slots, expected) => expect(chooseSlot(slots, 16)).toMatchObject(expected))

  test('form few rows, and lose the conversations that were used least recently', async () => {
    const { context } = fakeContext().native
    const slots = openSlots({ count: 64, queue: 0, worth: 2 })
    const computing: { slot: Slot; ends: number }[] = []
    let random = 1
    const draw = () => (random = (random * 48_271) % 2_147_483_647) / 2_147_483_647
    let rows = 0
    let reused = 0
    for (let turn = 0; turn < 3000; turn++) {
      // One turn of a conversation that was last seen 40 turns ago: a slot of 64 still has it while 16 compute.
      const prompt = [turn % 40, 1000, 1001, 1002]
      await slots.take(stays)
      const choice = slots.choose(prompt, false)
      reused += await prepareSlot(context, choice, { prompt, piece: 4, reproducible: false }, 0)
      choice.slot.tokens = prompt
      computing.push({ slot: choice.slot, ends: turn + 4 + Math.ceil(draw() * 24) })
      for (const { slot } of computing.filter(({ ends }) => ends <= turn)) slots.give(slot)
      computing.splice(0, Infinity, ...computing.filter(({ ends }) => ends > turn))
      const held = new Set(computing.map(({ slot }) => slot.sequence))
      rows += [...held].filter(sequence => !held.has(sequence - 1)).length
    }
    expect(rows / 3000).toBeLessThan(4)
    expect(reused).toBe(3 * (3000 - 40))
  })

  test('are chosen when the prompt is prepared, by what the slots remember then', async () => {
    const { context } = fakeContext().native
    const slots = openSlots({ count: 8, queue: 0, worth: 2 })
    const prepare = async (prompt: number[]) => {
      const choice = slots.choose(prompt, false)
      const reused = await prepareSlot(context, choice, { prompt, piece: 4, reproducible: false }, 0)
      choice.slot.tokens = prompt
      return { slot: choice.slot, reused }
    }
    const conversations = [10, 20, 30, 40].map(first => [first, 1, 2, 3])
    for (const _ of conversations) await slots.take(stays)
    const first = []
    for (const prompt of conversations) first.push(await prepare(prompt))
    for (const { slot } of first) slots.give(slot)
    // All arrive during one batch. The first ones move memory that belongs to the later ones.
    for (const _ of conversations) await slots.take(stays)
    for (const prompt of [0, 2, 1, 3].map(at => conversations[at]!))
      expect((await prepare([...prompt, 4])).reused).toBe(4)
  })

  test('beside answers with a seed are not preferred, nor are any for such answers', async () => {
    const slots = openSlots({ count: 4, queue: 0, worth: 2 })
    const taken = async (alone: boolean) => {
      await slots.take(stays)
      return slots.choose([], alone).slot
    }
    const [first, second] = [await taken(false), await taken(false)]
    expect([first.sequence, second.sequence]).toEqual([0, 1])
    slots.give(first)
    slots.give(second)
    expect((await taken(true)).sequence).toBe(2)
    expect((await taken(false)).sequence).toBe(3)
    expect((await taken(true)).sequence).toBe(0)
  })

  test('have a common prefix', () => {
    expect(commonStart([1, 2, 3], [1, 2, 4])).toBe(2)
    expect(commonStart([1, 2], [1, 2, 4])).toBe(2)
    expect(commonStart([], [1])).toBe(0)
  })

  test('are assigned first come, first served', async () => {
    const slots = openSlots({ count: 1, queue: 10, worth: 16 })
    const { slot } = await taken(slots)
    const order: string[] = []
    const waiting = ['a', 'b', 'c'].map(name => taken(slots).then(given => (order.push(name), given.slot)))
    expect(slots.waiting).toBe(3)
    for (const next of waiting) {
      slots.give(slot)
      expect(await next).toBe(slot)
    }
    expect(order).toEqual(['a', 'b', 'c'])
  })

  test('skip aborted requests', async () => {
    const slots = openSlots({ count: 1, queue: 10, worth: 16 })
    const { slot } = await taken(slots)
    const leaver = new AbortController()
    const [gone, stayed] = [slots.take(leaver.signal), taken(slots)]
    const refused = expect(gone).rejects.toThrow('gone')
    leaver.abort(new Failure('cancelled', 'gone'))
    await refused
    slots.give(slot)
    expect((await stayed).slot).toBe(slot)
    await expect(slots.take(leaver.signal)).rejects.toThrow('gone')
  })

  test('are refused when too many requests wait, but not to another answer of an accepted request', async () => {
    const slots = openSlots({ count: 1, queue: 1, worth: 16 })
    const { slot } = await taken(slots)
    const waiting = taken(slots)
    await expect(slots.take(stays)).rejects.toMatchObject({ code: 'queue_full', retryAfterMs: 1000 })
    const second = taken(slots, true)
    slots.give(slot)
    expect((await waiting).slot).toBe(slot)
    slots.give(slot)
    expect((await second).slot).toBe(slot)
  })

  test('are free again after an answer that ended before it chose one', async () => {
    const slots = openSlots({ count: 1, queue: 1, worth: 16 })
    await slots.take(stays)
    const waiting = taken(slots)
    slots.give()
    slots.give((await waiting).slot)
    expect([slots.free, slots.waiting]).toEqual([1, 0])
  })
})

/** A fake context that only records the computed tokens. `forgets` is whether it can drop a part. */
function fakeContext({ forgets = true, first = 0 } = {}) {
  const batches: [sequence: number, position: number, tokens: number[]][][] = []
  let batch: [number, number, number[]][] = []
  const context = {
    initBatch: () => {
      batch = []
      batches.push(batch)
    },
    addToBatch: (sequence: number, position: number, tokens: Uint32Array, logits: Uint32Array) => {
      batch.push([sequence, position, [...tokens]])
      return logits.map(() => sequence)
    },
    decodeBatch: vi.fn(async () => {}),
    removeTokenCellsFromSequence: vi.fn((_sequence: number, _from: number, _to: number) => forgets),
    getSequenceKvCacheMinPosition: () => first,
    disposeSequence: vi.fn(),
    copySequenceStateFromOtherSequence: vi.fn(async () => 0),
  }
  return { context, native: { context } as unknown as Native, batches }
}
const slotOf = (sequence: number, tokens: number[], exact = 0): Slot => ({
  sequence,
  tokens,
  usedAt: 0,
  exact,
  held: false,
})

test('tasks under a mutex run one after another, even if one fails', async () => {
  const exclusive = openMutex()
  const order: string[] = []
  const first = Promise.withResolvers<void>()
  const works = [
    exclusive(async () => {
      await first.promise
      order.push('first')
      throw new Error('broken')
    }),
    exclusive(async () => void order.push('second')),
  ]
  first.resolve()
  await expect(works[0]).rejects.toThrow('broken')
  await works[1]
  expect(order).toEqual(['first', 'second'])
})

describe('a prompt', () => {
  const settled = (
    slot: Slot,
    length: number,
    more: { reproducible?: boolean; source?: Slot } = {},
    fake = fakeContext(),
  ) =>
    prepareSlot(
      fake.native.context,
      { slot, source: more.source ?? slot },
      { prompt: count(length), piece: 4, reproducible: more.reproducible ?? false },
      0,
    )
  test('continues after the tokens in the slot', async () => {
    const slot = slotOf(0, [0, 1, 2, 99, 98])
    expect(await settled(slot, 6)).toBe(3)
    expect(slot.tokens).toEqual([0, 1, 2])
  })
  test('computes its last token again', async () => expect(await settled(slotOf(0, count(9)), 6)).toBe(5))
  test('with a seed continues after whole pieces only, and only for the same prompt', async () => {
    expect(await settled(slotOf(0, count(6)), 10, { reproducible: true })).toBe(0)
    expect(await settled(slotOf(0, count(12), 9), 10, { reproducible: true })).toBe(9)
    const longer = slotOf(0, count(12), 9)
    expect(await settled(longer, 12, { reproducible: true })).toBe(8)
    expect(longer.exact).toBe(8)
  })
  test('continues after the tokens of another slot, whose memory is copied', async () => {
    const fake = fakeContext()
    const [slot, source] = [slotOf(0, [7]), slotOf(1, count(20), 8)]
    expect(await settled(slot, 10, { source }, fake)).toBe(9)
    expect(fake.context.copySequenceStateFromOtherSequence).toHaveBeenCalledWith(0, 1)
    expect([slot.exact, source.tokens.length]).toEqual([8, 20])
  })
  test('moves the conversation in its slot to where it is kept', async () => {
    const fake = fakeContext()
    const [slot, keep] = [{ ...slotOf(0, [7, 8, 9], 3), usedAt: 5 }, slotOf(1, [1])]
    const work = { prompt: count(4), piece: 4, reproducible: false }
    expect(await prepareSlot(fake.native.context, { slot, source: slot, keep }, work, 0)).toBe(0)
    expect(keep).toMatchObject({ tokens: [7, 8, 9], usedAt: 5, exact: 3 })
    expect(fake.context.copySequenceStateFromOtherSequence).toHaveBeenCalledTimes(1)
  })
  test('takes its conversation along, unless it is computed anew', async () => {
    for (const anew of [false, true]) {
      const [slot, source] = [slotOf(0, []), { ...slotOf(1, count(9)), usedAt: 5 }]
      const work = { prompt: count(12), piece: 4, reproducible: false, anew }
      const choice = { slot, source, moved: true }
      expect(await prepareSlot(fakeContext().native.context, choice, work, 0)).toBe(anew ? 0 : 9)
      expect(source.usedAt).toBe(anew ? 5 : 0)
    }
  })
  test('finds nothing in a slot to which a copy failed', async () => {
    const fake = fakeContext()
    fake.context.copySequenceStateFromOtherSequence.mockRejectedValue(new Error('no memory'))
    const [slot, keep] = [slotOf(0, [7, 8, 9], 3), slotOf(1, [1, 2])]
    const work = { prompt: count(4), piece: 4, reproducible: false }
    await expect(prepareSlot(fake.native.context, { slot, source: slot, keep }, work, 0)).rejects.toThrow('no memory')
    expect([slot.tokens, keep.tokens]).toEqual([[7, 8, 9], []])
    expect(fake.context.disposeSequence).toHaveBeenCalledWith(1)
  })
  test('does not copy tokens that the other slot has dropped since', async () => {
    const fake = fakeContext()
    expect(await settled(slotOf(0, [0, 1]), 10, { source: slotOf(1, [0, 9]) }, fake)).toBe(2)
    expect(fake.context.copySequenceStateFromOtherSequence).not.toHaveBeenCalled()
  })
  test.each([
    ['cannot drop a part', { forgets: false }],
    ['no longer has the whole window', { first: 3 }],
  ])('starts from the beginning where the memory %s', async (_rule, kind) => {
    const fake = fakeContext(kind)
    const slot = slotOf(0, [0, 1, 99], 1)
    expect(await settled(slot, 4, {}, fake)).toBe(0)
    expect(fake.context.disposeSequence).toHaveBeenCalledWith(0)
    expect(slot).toMatchObject({ tokens: [], exact: 0 })
  })
})

describe('rounds', () => {
  /** Generates `answers` tokens after its prompt. */
  function memberOf(sequence: number, length: number, answers: number, more: Partial<Member> = {}) {
    const done = Promise.withResolvers<string>()
    const slot = slotOf(sequence, [])
    let left = answers
    let over = false
    const member: Member = {
      choose: () => ({ slot, source: slot }),
      slot,
      prompt: count(length),
      alone: false,
      pending: count(length),
      next: 0,
      blocked: false,
      get over() {
        return over
      },
      settled: reused => {
        member.pending = count(length).slice(reused)
      },
      scoring: undefined,
      draw: async () => 7,
      accept: token => {
        over = --left === 0
        Object.assign(member, { pending: [token], next: 0 })
      },
      tell: () => {},
      fail: error => {
        over = true
        done.resolve((error as Error).message)
      },
      release: broken => done.resolve(broken ? 'broken' : 'done'),
      ...more,
    }
    return { member, done: done.promise, slot }
  }
  const open = (fake: ReturnType<typeof fakeContext>) =>
    openRounds({ native: fake.native, batchSize: 16, piece: 4, window: 0, exclusive: noMutex })

  test('batch requests that arrive at the same time, and later ones', async () => {
    const fake = fakeContext()
    const rounds = open(fake)
    const [a, b, late] = [memberOf(0, 2, 3), memberOf(1, 3, 3), memberOf(2, 1, 1)]
    rounds.add(a.member)
    rounds.add(b.member)
    fake.context.decodeBatch.mockImplementationOnce(async () => rounds.add(late.member))
    expect(await Promise.all([a.done, b.done, late.done])).toEqual(['done', 'done', 'done'])
    expect(fake.batches.map(batch => batch.map(([sequence]) => sequence))).toEqual([
      [0, 1],
      [0, 1, 2],
      [0, 1],
    ])
    expect(fake.batches[0]).toEqual([
      [0, 0, [0, 1]],
      [1, 0, [0, 1, 2]],
    ])
    expect(a.slot.tokens).toEqual([0, 1, 7, 7])
    await rounds.idle()
  })

  test('compute a long prompt in pieces beside an answer, and a seeded one in batches without others', async () => {
    const fake = fakeContext()
    const rounds = open(fake)
    const [answer, long, seeded] = [memberOf(0, 1, 4), memberOf(1, 7, 1), memberOf(2, 6, 2, { alone: true })]
    for (const { member } of [answer, long, seeded]) rounds.add(member)
    await Promise.all([answer.done, long.done, seeded.done])
    const amounts = fake.batches.map(batch =>
      batch.map(([sequence, , tokens]) => `${sequence}:${tokens.length}`).join(' '),
    )
    expect(amounts).toEqual(['0:1 1:4', '2:4', '0:1 1:3', '2:1', '0:1', '2:1', '0:1', '2:1'])
    expect(seeded.slot.exact).toBe(5)
  })

  test('add sequences to a batch in the order of their numbers, which llama.cpp computes together', async () => {
    const fake = fakeContext()
    const rounds = open(fake)
    const members = [3, 1, 2, 0].map(sequence => memberOf(sequence, 1, 2))
    for (const { member } of members) rounds.add(member)
    await Promise.all(members.map(({ done }) => done))
    expect(fake.batches.map(batch => batch.map(([sequence]) => sequence))).toEqual([
      [0, 1, 2, 3],
      [0, 1, 2, 3],
    ])
  })

  test('skip a request whose client is slow', async () => {
    const fake = fakeContext()
    const rounds = open(fake)
    const waits = memberOf(0, 1, 1, { blocked: true })
    const goes = memberOf(1, 1, 2)
    rounds.add(waits.member)
    rounds.add(goes.member)
    await goes.done
    expect(fake.batches.flat().every(([sequence]) => sequence === 1)).toBe(true)
    Object.assign(waits.member, { blocked: false })
    rounds.wake()
    expect(await waits.done).toBe('done')
  })

  test('send text while the next batch is computed', async () => {
    const fake = fakeContext()
    const rounds = open(fake)
    const order: string[] = []
    fake.context.decodeBatch.mockImplementation(async () => void order.push('compute'))
    const { member, done } = memberOf(0, 1, 2, { tell: () => order.push('tell') })
    rounds.add(member)
    await done
    await rounds.idle()
    expect(order).toEqual(['compute', 'compute', 'tell', 'tell'])
  })

  /** An answer that counts upwards after its prompt, with what is guessed for each of its tokens. */
  function counting(sequence: number, answers: number, guessed: (after: number) => number[]) {
    let last = 1
    const rate = openGuessLength(4).rate()
    const tried = vi.spyOn(rate, 'tried')
    const made = memberOf(sequence, 2, answers, {
      draw: async () => ++last,
      guesses: { next: most => guessed(last).slice(0, most), rate },
    })
    return { ...made, tried }
  }
  const guessing = (fake: ReturnType<typeof fakeContext>, longest = 4) =>
    openRounds({
      native: fake.native,
      batchSize: 16,
      piece: 4,
      window: 0,
      exclusive: noMutex,
      guessLength: { ...openGuessLength(longest), best: () => longest },
    })

  test('compute guessed tokens with the token before them, and keep those that are sampled', async () => {
    const fake = fakeContext()
    const rounds = guessing(fake)
    const answer = counting(0, 6, after => [after + 1, after + 2, 99])
    rounds.add(answer.member)
    expect(await answer.done).toBe('done')
    expect(fake.batches.flat()).toEqual([
      [0, 0, [0, 1]],
      [0, 2, [2, 3, 4, 99]],
      [0, 5, [5, 6, 7, 99]],
    ])
    // What follows the right ones leaves the memory before the next batch.
    expect(fake.context.removeTokenCellsFromSequence.mock.calls).toEqual([
      [0, 5, -1],
      [0, 8, -1],
    ])
    expect(answer.slot.tokens).toEqual([0, 1, 2, 3, 4, 5, 6, 7])
    expect(answer.tried.mock.calls).toEqual([[3, 2]])
  })

  test('end an answer within guessed tokens', async () => {
    const fake = fakeContext()
    const rounds = guessing(fake)
    const answer = counting(0, 3, after => [after + 1, after + 2, after + 3, after + 4])
    rounds.add(answer.member)
    expect(await answer.done).toBe('done')
    expect(answer.slot.tokens).toEqual([0, 1, 2, 3, 4])
    expect(fake.context.removeTokenCellsFromSequence.mock.calls).toEqual([[0, 5, -1]])
  })

  test('guess nothing for a prompt, an answer with a seed, or beside a prompt', async () => {
    const fake = fakeContext()
    const rounds = guessing(fake)
    const answer = counting(0, 3, () => [99])
    const seeded = counting(1, 3, () => [99])
    Object.assign(seeded.member, { alone: true })
    const prompt = memberOf(2, 16, 1)
    for (const { member } of [answer, seeded, prompt]) rounds.add(member)
    await Promise.all([answer.done, seeded.done, prompt.done])
    const withPrompt = fake.batches.filter(batch => batch.some(([sequence]) => sequence === 2))
    expect(withPrompt.length).toBeGreaterThan(1)
    expect(withPrompt.flat().every(([, , tokens]) => !tokens.includes(99))).toBe(true)
    expect(fake.batches.flat().every(([sequence, , tokens]) => sequence === 0 || !tokens.includes(99))).toBe(true)
  })

  test('have no more guesses than a batch has room for', async () => {
    const fake = fakeContext()
    const rounds = guessing(fake, 10)
    const members = [0, 1, 2].map(sequence => counting(sequence, 3, after => Array(10).fill(after + 1)))
    for (const { member } of members) rounds.add(member)
    await Promise.all(members.map(({ done }) => done))
    const sizes = fake.batches.map(batch => batch.reduce((sum, [, , tokens]) => sum + tokens.length, 0))
    expect(Math.max(...sizes)).toBe(16)
  })

  test('fail an answer whose memory cannot forget a wrong guess', async () => {
    const rounds = guessing(fakeContext({ forgets: false }))
    const answer = counting(0, 5, () => [99])
    rounds.add(answer.member)
    expect(await answer.done).toMatch(/cannot forget/)
  })

  test('continue after an error of one request, and of a whole batch', async () => {
    const fake = fakeContext()
    const rounds = open(fake)
    const bad = memberOf(0, 1, 1, { draw: () => Promise.reject(new Error('broken')) })
    const good = memberOf(1, 1, 2)
    rounds.add(bad.member)
    rounds.add(good.member)
    expect(await Promise.all([bad.done, good.done])).toEqual(['broken', 'done'])
    expect(fake.context.disposeSequence).toHaveBeenCalledWith(0)
    fake.context.decodeBatch.mockImplementationOnce(() => Promise.reject(new Error('no memory')))
    const unlucky = memberOf(2, 1, 1)
    rounds.add(unlucky.member)
    expect(await unlucky.done).toBe('no memory')
    const next = memberOf(3, 1, 1)
    rounds.add(next.member)
    expect(await next.done).toBe('done')
  })
})
