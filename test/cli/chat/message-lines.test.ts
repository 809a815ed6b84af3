import { expect, test } from 'vitest'
import { openMessageLines } from '../../../cli/chat/input.ts'

test('a backslash at the end continues the message on the next line', () => {
  const lines = openMessageLines()
  expect(lines.take('one\\')).toBeUndefined()
  expect(lines.isOpen()).toBe(true)
  expect(lines.take('two\\')).toBeUndefined()
  expect(lines.take('three')).toBe('one\ntwo\nthree')
  expect(lines.isOpen()).toBe(false)
  expect(lines.take('four')).toBe('four')
})

test('a continued message can be discarded', () => {
  const lines = openMessageLines()
  lines.take('one\\')
  lines.forget()
  expect(lines.take('two')).toBe('two')
})

test.each([
  ['a block', ['"""one', '', 'two"""'], 'one\n\ntwo'],
  ['on one line', ['"""one"""'], 'one'],
  ['the quotes on lines of their own', ['"""', 'one', '""" '], '\none\n'.slice(1)],
  ['a backslash inside', ['"""one\\', 'two"""'], 'one\\\ntwo'],
  ['an instruction', ['/system """one', 'two"""'], '/system one\ntwo'],
  ['quotes in the middle of a line', ['say """x"""'], 'say """x"""'],
])('three quotes: %s', (_, typed, message) => {
  const lines = openMessageLines()
  expect(
    typed
      .map(line => lines.take(line))
      .at(-1)
      ?.trimStart(),
  ).toBe(message)
  expect(lines.isOpen()).toBe(false)
})

test('pasted lines belong to the line that is typed after them', () => {
  const lines = openMessageLines()
  lines.hold('one')
  lines.hold('two')
  expect(lines.isOpen()).toBe(true)
  expect(lines.take('three')).toBe('one\ntwo\nthree')
})
