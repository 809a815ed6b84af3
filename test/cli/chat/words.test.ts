import { expect, test } from 'vitest'
import { type Meaning, meaningOf, openLines } from '../../../cli/chat/words.ts'

const lines: [line: string, meaning: Meaning][] = [
  ['', { does: 'nothing' }],
  ['   ', { does: 'nothing' }],
  ['hello', { does: 'say', text: 'hello' }],
  [' hello  world ', { does: 'say', text: 'hello  world' }],
  ['//etc/passwd is a file', { does: 'say', text: '/etc/passwd is a file' }],
  ['/clear', { does: 'clear' }],
  ['/help', { does: 'help' }],
  ['/?', { does: 'help' }],
  ['/exit', { does: 'leave' }],
  ['/quit', { does: 'leave' }],
  ['/bye', { does: 'leave' }],
  ['/model', { does: 'model', id: undefined }],
  ['/model  org/name:tag ', { does: 'model', id: 'org/name:tag' }],
  ['/system', { does: 'system', text: undefined }],
  ['/system Be brief.  Please.', { does: 'system', text: 'Be brief.  Please.' }],
  ['/system -', { does: 'system', text: '-' }],
  ['/sytem Be brief.', { does: 'unknown', word: '/sytem' }],
  ['/', { does: 'unknown', word: '/' }],
]

test.each(lines)('"%s"', (line, meaning) => {
  expect(meaningOf(line)).toEqual(meaning)
})

test('a backslash at the end carries a message on', () => {
  const lines = openLines()
  expect(lines.take('one\\')).toBeUndefined()
  expect(lines.isOpen()).toBe(true)
  expect(lines.take('two\\')).toBeUndefined()
  expect(lines.take('three')).toBe('one\ntwo\nthree')
  expect(lines.isOpen()).toBe(false)
  expect(lines.take('four')).toBe('four')
})

test('what was carried on can be forgotten', () => {
  const lines = openLines()
  lines.take('one\\')
  lines.forget()
  expect(lines.take('two')).toBe('two')
})
