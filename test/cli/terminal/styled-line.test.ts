import { expect, test } from 'vitest'
import { cutLine, lineWidth, padded } from '../../../cli/terminal/styled-line.ts'

test.each([
  ['plain', 5],
  ['grüße', 5],
  ['e\u0301', 1],
  ['─┬─ █', 5],
  ['日本語', 6],
  ['한글', 4],
  ['Ａ', 2],
  ['🚀', 2],
  ['❤️', 2],
  ['', 0],
])('%j is %i columns wide in a terminal', (text, columns) => {
  expect(lineWidth(text)).toBe(columns)
})

test.each([
  ['plain text', 6, 'plain…'],
  ['日本語', 6, '日本語'],
  ['日本語', 5, '日本…'],
  ['日本語', 4, '日…'],
  ['x', 0, ''],
])('%j cut to %i columns is %j', (text, width, shown) => {
  expect(cutLine(text, width)).toBe(shown)
})

test('padded text has the requested width, whatever its characters', () => {
  for (const text of ['a', 'grüße', '日本語日本語', '🚀'])
    for (const width of [1, 4, 7]) expect(lineWidth(padded(text, width))).toBe(width)
})
