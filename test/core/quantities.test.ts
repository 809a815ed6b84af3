import { expect, test } from 'vitest'
import { Bytes, Duration, durationAdvice, sizeAdvice } from '../../core/quantities.ts'
import { bytesText, durationText } from '../../core/quantity-text.ts'

test.each([
  [0, '0ms'],
  [250, '250ms'],
  [1_500, '1500ms'],
  [90_000, '90s'],
  [300_000, '5m'],
  [3_600_000, '1h'],
  [7 * 86_400_000, '7d'],
])('%d ms is formatted as %s and parsed again', (ms, text) => {
  expect(durationText(ms)).toBe(text)
  expect(Duration.parse(text)).toBe(ms)
})

test.each([
  [0, '0B'],
  [1_000, '1000B'],
  [96 << 10, '96KiB'],
  [1 << 20, '1MiB'],
  [2 ** 30, '1GiB'],
  [1_536 * 2 ** 20, '1536MiB'],
])('%d bytes are formatted as %s and parsed again', (bytes, text) => {
  expect(bytesText(bytes)).toBe(text)
  expect(Bytes.parse(text)).toBe(bytes)
})

test.each(['36501d', '99999999999999999999h', 4e12])('%s is longer than any duration', text => {
  expect(Duration.safeParse(text).error?.issues[0]?.message).toBe('A duration is at most 36500d.')
})

test.each([
  [sizeAdvice, '150G', '150GB'],
  [sizeAdvice, '8 gib', '8GiB'],
  [sizeAdvice, '512Mi', '512MiB'],
  [sizeAdvice, 'much', undefined],
  [sizeAdvice, '12 apples', undefined],
  [durationAdvice, '30 sec', '30s'],
  [durationAdvice, '5min', '5m'],
  [durationAdvice, '1.5 hours', '1.5h'],
  [durationAdvice, '20 milliseconds', '20ms'],
  [durationAdvice, '2 months', undefined],
  [durationAdvice, 'never', undefined],
])('%o suggests for %s', (advice, text, meant) => {
  const said = advice(text)
  expect(said).toMatch(/^Write a (size|duration) as /)
  expect(/Did you mean '(.*)'\?$/.exec(said)?.[1]).toBe(meant)
})
