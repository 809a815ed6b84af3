import { expect, test } from 'vitest'
import {
  compareLines,
  compareWords,
  shownLines,
  shownPassages,
} from '../../../../../../server/console/app/components/difference/compare.ts'

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

const marks = { same: '', added: '+', removed: '-' }
const passages = (a: string, b: string) => compareWords(a, b)?.map(({ kind, text }) => marks[kind] + text)

test.each([
  ['A red house.', 'A red house.', ['A red house.']],
  ['A red house.', 'A blue house.', ['A ', '-red', '+blue', ' house.']],
  // Words in a row that all differ are one passage.
  ['A red old house.', 'A blue new house.', ['A ', '-red old', '+blue new', ' house.']],
  ['A red house.', 'A house.', ['A ', '-red ', 'house.']],
  ['A house', 'A house again', ['A house', '+ again']],
  ['one\n', 'one\n\n', ['one\n', '+\n']],
  ['', 'new', ['+new']],
  // A language without spaces.
  ['\u732b\u304c\u597d\u304d', '\u72ac\u304c\u597d\u304d', ['-\u732b', '+\u72ac', '\u304c\u597d\u304d']],
])('the words of %j and %j', (a, b, expected) => {
  expect(passages(a, b)).toEqual(expected)
})

test('the passages of both texts are the texts', () => {
  const [a, b] = ['The sea is\n\nwide, and  blue. It sings.', 'A sea is wide, or  green - it sings!']
  const of = (without: string) =>
    compareWords(a, b)!
      .filter(({ kind }) => kind !== without)
      .map(({ text }) => text)
      .join('')
  expect(of('added')).toBe(a)
})

test('texts that differ in thousands of words have no passages', () => {
  const long = (word: string) => `${word} `.repeat(1_501)
  expect(compareWords(long('a'), long('b'))).toBeUndefined()
})

test('of long passages that did not change the ends are shown', () => {
  const long = 'x'.repeat(1_000)
  const [removed, added] = [
    { kind: 'removed', text: 'a' },
    { kind: 'added', text: 'b' },
  ] as const
  const same = (length: number) => ({ kind: 'same' as const, text: 'x'.repeat(length) })
  expect(shownPassages([{ kind: 'same', text: long }, removed, { kind: 'same', text: long }, added], 100)).toEqual([
    900,
    same(100),
    removed,
    same(100),
    800,
    same(100),
    added,
  ])
  expect(shownPassages([removed, { kind: 'same', text: 'x'.repeat(300) }, added], 100)).toEqual([
    removed,
    same(300),
    added,
  ])
})
