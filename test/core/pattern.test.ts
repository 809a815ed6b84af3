import { expect, test } from 'vitest'
import { loadPatterns, maxPatternLength, sizeOf } from '../../core/pattern.ts'

const compile = await loadPatterns()

test('finds named groups from left to right', () => {
  const pattern = compile('(?<name>[a-z]+)=(?<value>\\d+)?')
  expect(pattern.groups).toEqual(['name', 'value'])
  expect([...pattern.matches('a=1, bc=;')]).toEqual([
    { text: 'a=1', index: 0, groups: { name: 'a', value: '1' } },
    { text: 'bc=', index: 5, groups: { name: 'bc', value: null } },
  ])
})

test('a match may be empty, and characters may need two code units', () => {
  expect([...compile('x*').matches('ax')].map(({ text, index }) => [text, index])).toEqual([
    ['', 0],
    ['x', 1],
    ['', 2],
  ])
  expect([...compile('b').matches('😀b')][0]!.index).toBe(2)
})

test.each([
  ['^yes\\b', 'yes, please', true],
  ['^yes\\b', 'yesterday', false],
  ['(?i)YES', 'oh yes', true],
  ['\\p{L}+', 'é', true],
  ['^.$', '\n', false],
])('%s in %j: %s', (source, text, found) => {
  expect(compile(source).test(text)).toBe(found)
})

test.each([
  ['a(?=b)', 'look-ahead and look-behind do not exist here'],
  ['(?<!a)b', 'look-ahead and look-behind do not exist here'],
  ['(a)\\1', 'back-references such as \\1 do not exist here'],
  ['[a', "missing closing ] ('[a')"],
  ['a{2000}', 'it repeats too much'],
  ['((a{100}){100}){100}', 'it repeats too much'],
  ['x'.repeat(maxPatternLength + 1), 'it has 1001 characters, and at most 1000 are allowed'],
])('refuses %s', (source, fault) => {
  expect(() => compile(source)).toThrow(
    expect.objectContaining({ code: 'invalid_value', message: expect.stringContaining(fault) }) as Error,
  )
})

test.each([
  ['(a*)*b', 'a'],
  ['(a|aa)+$', 'a'],
  ['(x+x+)+y', 'x'],
  ['(.*)(.*)(.*)(.*)[^x]', 'x'],
])('no text makes %s backtrack', (source, character) => {
  const pattern = compile(source)
  const took = (length: number) => {
    const text = `${character.repeat(length)}\n`
    const since = performance.now()
    pattern.test(text)
    pattern.matches(text).next()
    return performance.now() - since
  }
  took(1_000)
  // Backtracking would take years.
  expect(took(100_000)).toBeLessThan(2_000)
})

test.each([
  ['abc', 3],
  ['a{3}b', 4],
  ['(ab){10}', 20],
  ['((a{10}){10}){10}', 1_000],
  ['[a-z\\]]{1,40}', 40],
  ['a{2,}', 3],
  ['\\pL\\p{Greek}{2}', 60],
  ['(a|b)*?', 2],
  ['\\{3}', 3],
])('%s has %i parts', (source, size) => {
  expect(sizeOf(source)).toBe(size)
})

test('a pattern of too many repetitions is refused before it is compiled', async () => {
  const compile = await loadPatterns()
  const since = performance.now()
  expect(() => compile('(?:\\pL{1,1000})'.repeat(60))).toThrow('it repeats too much')
  expect(performance.now() - since).toBeLessThan(1_000)
})
