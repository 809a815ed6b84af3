import { expect, test } from 'vitest'
import { isLonger } from '../../../cli/terminal/pager.ts'

test.each([
  [1, 10, false],
  [23, 10, false],
  [24, 10, true],
  [12, 80, false],
  [12, 81, true],
])('%d lines of %d characters need more than 24 rows of 80 columns: %s', (lines, length, longer) => {
  const text = Array.from({ length: lines }, () => `\u001b[1m${'x'.repeat(length)}\u001b[22m`).join('\n')
  expect(isLonger(text, { rows: 24, columns: 80 })).toBe(longer)
})
