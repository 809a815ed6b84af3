import { expect, test } from 'vitest'
import { fontFiles } from '../../../bin/console/fonts.ts'

test('the fonts of the console have at most 110 kB together, and one of them is for the first screen', () => {
  const files = fontFiles()
  const bytes = files.reduce((sum, { bytes: one }) => sum + one.length, 0)
  expect(bytes).toBeGreaterThan(50_000)
  expect(bytes).toBeLessThanOrEqual(110_000)
  expect(files.filter(({ isFirst }) => isFirst)).toHaveLength(1)
  for (const { bytes: one, rule } of files) {
    expect(one.subarray(0, 4).toString()).toBe('wOF2')
    expect(rule('x.woff2')).toMatch(/font-display:swap;.*unicode-range:U\+[0-9A-F]/)
  }
})
