import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { heldBack, openText, stopAt } from '../../../../gpu/engines/gguf/stop.ts'

describe('a text ends at the start of the stop string that is complete first', () => {
  test.each([
    ['nothing to stop at', 'hello', [], -1],
    ['no match', 'hello', ['x'], -1],
    ['at the start', 'hello', ['h'], 0],
    ['in the middle', 'hello', ['ll'], 2],
    ['the first of several positions', 'abcabc', ['c'], 2],
    ['the one complete first, although the other begins earlier', 'abcd', ['abcd', 'bc'], 1],
    ['the longer of two complete at the same position', 'abcd', ['bc', 'abc'], 0],
    ['the same in either order', 'abcd', ['abc', 'bc'], 0],
    ['characters of two UTF-16 units', 'x😀y', ['😀'], 1],
    ['line breaks', 'a\n\nb', ['\n\n'], 1],
  ])('%s', (_rule, text, stops, at) => expect(stopAt(text, stops)).toBe(at))
})

describe('a possible beginning of a stop string is held back', () => {
  test.each([
    ['nothing without stop strings', 'hello', [], 0],
    ['one character', 'hell', ['lo'], 1],
    ['as much as matches', 'hello wor', ['world'], 3],
    ['the longest beginning', 'aab', ['aabc', 'bx'], 3],
    ['not a complete stop string, which is a match', 'abc', ['abc'], 0],
    ['a beginning that repeats', 'aaaa', ['aaab'], 3],
    ['nothing that cannot continue', 'hello!', ['lo'], 0],
  ])('%s', (_rule, text, stops, length) => expect(heldBack(text, stops)).toBe(length))
})

/** Feeds the bytes in the given pieces and records the output after each. */
function feed(bytes: Uint8Array, sizes: number[], stops: string[], dropFirstSpace = false) {
  const text = openText(stops, dropFirstSpace)
  const parts: string[] = []
  for (let at = 0, turn = 0; at < bytes.length && !text.stopped; turn++) {
    const size = sizes.length ? sizes[turn % sizes.length]! : bytes.length
    parts.push(text.push(bytes.subarray(at, at + size)))
    at += size
  }
  parts.push(text.end())
  return { parts, whole: parts.join(''), stopped: text.stopped }
}

describe('text from tokens', () => {
  const bytes = (text: string) => Buffer.from(text)
  test.each([
    ['a character split over tokens waits for its last byte', bytes('é'), [1], [], ['', 'é', '']],
    ['four bytes, one at a time', bytes('😀'), [1], [], ['', '', '', '😀', '']],
    ['an invalid byte is replaced at once', Uint8Array.of(0x80, 0x41), [1], [], ['\ufffd', 'A', '']],
    [
      'an incomplete character is replaced when another begins',
      Uint8Array.of(0xf0, 0x9f, 0x41),
      [1],
      [],
      ['', '', '\ufffdA', ''],
    ],
    ['an incomplete character at the end is replaced', Uint8Array.of(0x41, 0xc3), [1], [], ['A', '', '\ufffd']],
    ['a byte order mark is text', bytes('\ufeffa'), [1], [], ['', '', '\ufeff', 'a', '']],
    ['no part of a stop string split over tokens is output', bytes('one END two'), [3], ['END'], ['one', ' ', '', '']],
    ['text that only looked like a stop string comes later', bytes('ENtry'), [2], ['END'], ['', 'ENtr', 'y', '']],
    ['held-back text comes at the end', bytes('the E'), [5], ['END'], ['the ', 'E']],
    ['a stop string that ends with the replaced end', Uint8Array.of(0x41, 0xc3), [1], ['A\ufffd'], ['', '', '']],
  ])('%s', (_rule, input, sizes, stops, parts) => expect(feed(input, sizes, stops).parts).toEqual(parts))

  test.each([
    [' Hello', true, 'Hello'],
    ['  Hello', true, ' Hello'],
    ['Hello', true, 'Hello'],
    [' Hello', false, ' Hello'],
  ])('the space that the tokenizer put before %j (%s)', (text, drop, expected) =>
    expect(feed(bytes(text), [1], [], drop).whole).toBe(expected),
  )
})

const piecesOfText = fc.array(fc.constantFrom('a', 'b', 'ab', 'é', '😀', ' ', '\n', 'END', '\ufeff'), {
  maxLength: 30,
  size: 'max',
})
const anyBytes = fc.oneof(
  piecesOfText.map(parts => Uint8Array.from(Buffer.from(parts.join('')))),
  fc.uint8Array({ maxLength: 40, size: 'max' }),
)
const stops = fc.array(
  fc.oneof(
    fc
      .array(fc.constantFrom('a', 'b', 'é', '😀', ' ', 'E', 'N', 'D', '\ufffd'), { minLength: 1, maxLength: 4 })
      .map(parts => parts.join('')),
    fc.constantFrom('END', 'ab', 'aab'),
  ),
  { maxLength: 4, size: 'max' },
)
const cuts = fc.array(fc.integer({ min: 1, max: 7 }), { minLength: 1, maxLength: 8, size: 'max' })

test('the text is the same for every split of the bytes', () => {
  fc.assert(
    fc.property(anyBytes, cuts, stops, fc.boolean(), (input, sizes, stops, drop) => {
      const cut = feed(input, sizes, stops, drop)
      const once = feed(input, [], stops, drop)
      expect([cut.whole, cut.stopped]).toEqual([once.whole, once.stopped])
    }),
    { numRuns: 3000 },
  )
})

test('it is the decoded text up to its stop string, and every part of it is well-formed', () => {
  fc.assert(
    fc.property(anyBytes, cuts, stops, (input, sizes, stops) => {
      const decoded = new TextDecoder('utf-8', { ignoreBOM: true }).decode(input)
      const at = stopAt(decoded, stops)
      const { whole, parts, stopped } = feed(input, sizes, stops)
      expect(whole).toBe(at < 0 ? decoded : decoded.slice(0, at))
      expect(stopped).toBe(at >= 0)
      expect(parts.every(part => part.isWellFormed())).toBe(true)
    }),
    { numRuns: 3000 },
  )
})
