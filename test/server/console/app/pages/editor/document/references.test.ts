import { expect, test } from 'vitest'
import { referenceText } from '../../../../../../../core/workflows/references.ts'
import {
  isReference,
  outputReference,
  referencesOfText,
  replaceReferences,
} from '../../../../../../../server/console/app/pages/editor/document/references.ts'
import { referenceCases } from '../../../../../../core/workflows/_reference-cases.ts'

test.each(referenceCases)('the editor reads $text as the server does', ({ text, references }) => {
  expect(referencesOfText(text).map(({ root, path }) => [root, ...path])).toEqual(references)
})

test('a whole reference is told from a text with one', () => {
  const texts = ['${input.a}', '${ input.a }', '${input.a}${input.b}', ' ${input.a}', '$${input.a}', '${foo.a}', 'a', 1]
  expect(texts.map(isReference)).toEqual([true, true, false, false, false, false, false, false])
})

test.each([
  [referenceText('input', ['a "quoted" \\ name', 0, 'b']), ['input', 'a "quoted" \\ name', 0, 'b']],
  [outputReference('img 1', 'images[0].url'), ['nodes', 'img 1', 'result', 'images', 0, 'url']],
  [outputReference('list', '[0]'), ['nodes', 'list', 'result', 0]],
  [outputReference('0', ''), ['nodes', '0', 'result']],
])('%s is read as it was written', (text, reference) => {
  expect(referencesOfText(text).map(({ root, path }) => [root, ...path])).toEqual([reference])
})

test('replacing references leaves escapes, faults and the rest of the text as they are', () => {
  const text = '$${input.a} ${foo.a} ${input.a} ${ input.b } ${input.a'
  expect(
    replaceReferences(text, ({ root, path: [first] }) => (first === 'a' ? { root, path: ['c'] } : undefined)),
  ).toBe('$${input.a} ${foo.a} ${input.c} ${ input.b } ${input.a')
  expect(replaceReferences('a ${input.a} b', () => null)).toBe('a  b')
})
