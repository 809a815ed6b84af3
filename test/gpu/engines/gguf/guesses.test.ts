import { describe, expect, test } from 'vitest'
import { openGuessLength } from '../../../../gpu/engines/gguf/guess-length.ts'
import { openGuesses } from '../../../../gpu/engines/gguf/guesses.ts'

describe('guessed tokens', () => {
  test.each<[rule: string, text: number[], count: number, next: number[]]>([
    ['follow the same three tokens', [1, 2, 3, 4, 5, 6, 9, 1, 2, 3], 2, [4, 5]],
    ['are what followed them last', [1, 2, 3, 4, 1, 2, 3, 5, 1, 2, 3], 1, [5]],
    ['go on where the text ends', [1, 2, 3, 4, 1, 2, 3], 6, [4, 1, 2, 3, 4, 1]],
    ['repeat what repeats', [7, 7, 7, 7, 7], 3, [7, 7, 7]],
    ['need three tokens, not two', [8, 2, 3, 4, 5, 9, 2, 3], 2, []],
    ['are none in a text without repetition', [1, 2, 3, 4, 5, 6], 4, []],
    ['are none in a text of two tokens', [1, 2], 4, []],
    ['are none where none are wanted', [1, 2, 3, 4, 1, 2, 3], 0, []],
  ])('%s', (_rule, text, count, next) => expect(openGuesses(text).next(count)).toEqual(next))

  test('come from the answer too', () => {
    const guesses = openGuesses([1, 2])
    for (const token of [3, 4, 5, 1, 2, 3]) guesses.add(token)
    expect(guesses.next(2)).toEqual([4, 5])
  })

  test('never follow other tokens than those before, in a text that is longer than the table', () => {
    let random = 1
    const text = Array.from({ length: 200_000 }, () => (random = (random * 48_271) % 2_147_483_647) % 40)
    const guesses = openGuesses(text.slice(0, 100_000))
    const places = new Map<string, Set<number>>()
    const key = (end: number) => text.slice(end - 3, end).join(' ')
    for (let at = 3; at < text.length; at++) places.set(key(at), (places.get(key(at)) ?? new Set()).add(text[at]!))
    let known = 0
    for (let at = 100_000; at < text.length; at++) {
      const [next] = guesses.next(1)
      if (next !== undefined) {
        known++
        expect(places.get(key(at))!.has(next)).toBe(true)
      }
      guesses.add(text[at]!)
    }
    expect(known).toBeGreaterThan(50_000)
  })
})

describe('the number of tokens to guess', () => {
  /** After rounds of these sizes, of which each takes a fixed time and a time for each token. */
  const after = (fixed: number, each: number, sizes = [1, 2, 4, 8, 16]) => {
    const length = openGuessLength(16)
    for (let round = 0; round < 100; round++) {
      const tokens = sizes[round % sizes.length]!
      length.measured(tokens, fixed + each * tokens)
    }
    return length
  }
  test.each<
    [rule: string, fixed: number, each: number, others: number, rate: number, length: number | [number, number]]
  >([
    ['all where one more token costs nothing', 10, 0, 0, 0.9, 16],
    ['none where a guess is never right', 10, 1, 0, 0, 0],
    ['none where each token costs as much as a round', 0.1, 10, 0, 0.9, 0],
    ['many on a card, for one answer', 10, 0.1, 0, 0.8, [8, 16]],
    ['fewer for a worse guesser', 10, 0.1, 0, 0.4, [2, 5]],
    ['fewer beside other answers', 10, 0.5, 16, 0.8, [2, 7]],
    ['none beside so many answers that the card is full', 10, 0.5, 200, 0.8, 0],
  ])('is %s', (_rule, fixed, each, others, rate, wanted) => {
    const length = after(fixed, each).best(others, rate)
    const [least, most] = typeof wanted === 'number' ? [wanted, wanted] : wanted
    expect(length).toBeGreaterThanOrEqual(least)
    expect(length).toBeLessThanOrEqual(most)
  })

  test('is the most before anything was measured, and after many rounds of one size', () => {
    expect(openGuessLength(8).best(0, 0.5)).toBe(8)
    const length = after(1, 10)
    expect(length.best(0, 0.5)).toBe(0)
    for (let round = 0; round < 2000; round++) length.measured(1, 11)
    expect(length.best(0, 0.5)).toBe(16)
  })

  test('follows how often the guesses of a text are right, and of others before', () => {
    const length = openGuessLength(8)
    const first = length.rate()
    expect(first.value).toBe(0.5)
    for (let round = 0; round < 100; round++) first.tried(4, 4)
    expect(first.value).toBeGreaterThan(0.95)
    const second = length.rate()
    expect(second.value).toBeGreaterThan(0.8)
    for (let round = 0; round < 100; round++) second.tried(4, 0)
    expect(second.value).toBeLessThan(0.05)
    for (let round = 0; round < 300; round++) second.skipped()
    expect(second.value).toBeCloseTo(0.5, 1)
  })
})
