import { expect, test } from 'vitest'
import { dateText, indentedJson, sentenceText } from '../../../server/console/app/components/format.ts'

test('times in sentences of the server are written as other times are', () => {
  const at = Date.parse('2026-11-28T18:30:00Z') / 1_000
  expect(sentenceText("'a' waits: gpu0 is paused until 2026-11-28T18:30:00Z.")).toBe(
    `'a' waits: gpu0 is paused until ${dateText(at)}.`,
  )
  expect(sentenceText('from 2026-11-28T18:30Z to 2026-11-28T18:30:00.000Z')).toBe(
    `from ${dateText(at)} to ${dateText(at)}`,
  )
  expect(sentenceText('gpt-2026-11-28 waits.')).toBe('gpt-2026-11-28 waits.')
})

test.each([
  ['{"a":[1]}', '{\n  "a": [\n    1\n  ]\n}'],
  ['{"a":', '{"a":'],
  ['taken', 'taken'],
])('JSON has a line for each value, other text stays: %s', (text, expected) => {
  expect(indentedJson(text)).toBe(expected)
})
