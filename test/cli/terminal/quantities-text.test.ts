import { expect, test } from 'vitest'
import { lengthText } from '../../../cli/terminal/quantities-text.ts'

test.each([
  [-1, '0 s'],
  [42, '42 s'],
  [60, '1 min'],
  [7_500, '2 h 5 min'],
  [7_200, '2 h'],
  [86_400, '1 d'],
  [90_000, '1 d 1 h'],
  [349_200, '4 d 1 h'],
])('%d seconds are %s', (seconds, text) => expect(lengthText(seconds)).toBe(text))
