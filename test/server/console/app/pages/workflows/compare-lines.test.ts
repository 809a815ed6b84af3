import { expect, test } from 'vitest'
import { compareLines, shownLines } from '../../../../../../server/console/app/pages/workflows/compare-lines.ts'

const signs = { same: ' ', added: '+', removed: '-' }
const compared = (a: string, b: string) => compareLines(a, b).map(({ kind, text }) => signs[kind] + text)

test.each([
  ['a\nb', 'a\nb', [' a', ' b']],
  ['a\nb\nc', 'a\nc', [' a', '-b', ' c']],
  ['a\nc', 'a\nb\nc', [' a', '+b', ' c']],
  ['a\nx\nb\ny', 'a\nb\nz\ny', [' a', '-x', ' b', '+z', ' y']],
  ['', 'a', ['-', '+a']],
  ['a\na\na', 'a\na', [' a', ' a', '-a']],
])('%j and %j', (a, b, lines) => {
  expect(compared(a, b)).toEqual(lines)
})

test('texts too long to compare are shown as removed and added', () => {
  const long = (word: string) => Array.from({ length: 3_001 }, (_, at) => `${word}${at}`).join('\n')
  const kinds = new Set(compareLines(long('a'), long('b')).map(({ kind }) => kind))
  expect(kinds).toEqual(new Set(['removed', 'added']))
})

test('lines far from a change are counted', () => {
  const lines = Array.from({ length: 20 }, (_, at) => String(at))
  const changed = lines.with(10, 'ten')
  expect(shownLines(compareLines(lines.join('\n'), changed.join('\n')), 1)).toEqual([
    9,
    { kind: 'same', text: '9' },
    { kind: 'removed', text: '10' },
    { kind: 'added', text: 'ten' },
    { kind: 'same', text: '11' },
    8,
  ])
})
