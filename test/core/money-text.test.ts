import { expect, test } from 'vitest'
import { moneyText } from '../../core/money-text.ts'

test.each([
  [0, '0.00'],
  [12.5, '12.50'],
  [12.345, '12.345'],
  [1.0001, '1.0001'],
  [100, '100.00'],
  [0.1 + 0.2, '0.30'],
  [1_234_567.1, '1234567.10'],
  [0.0001, '0.0001'],
  [0.000003, '0.000003'],
])('the amount %d is written as %s', (amount, text) => {
  expect(moneyText(amount)).toBe(text)
})
