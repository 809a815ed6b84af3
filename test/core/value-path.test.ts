import { expect, test } from 'vitest'
import { valueAt, valuePath } from '../../core/value-path.ts'
import { parseReference } from '../../core/workflows/references.ts'

test.each([
  ['a', ['a']],
  ['a.b[0].c', ['a', 'b', 0, 'c']],
  ['a["b c"].d', ['a', 'b c', 'd']],
  ['a["b\\"c"]', ['a', 'b"c']],
  ['a.b-c', ['a', 'b-c']],
])('%s is read as in a reference', (text, path) => {
  expect(valuePath(text)).toEqual(path)
  expect(parseReference(`input.${text}`).path).toEqual(path)
})

test.each(['a.', 'a b', 'a[x]', 'a[-1]', 'a[', '..', `a${'.a'.repeat(40)}`, 'a'.repeat(600)])('%s is no path', text => {
  expect(valuePath(text)).toBeUndefined()
})

test.each<[unknown, string, unknown]>([
  [[{ a: 1 }], '[0].a', 1],
  [[1], '[1]', undefined],
  [[1], 'length', undefined],
  [{}, 'constructor', undefined],
  [{ a: null }, 'a.b', undefined],
  ['text', '', 'text'],
])('%j at %s', (value, path, found) => {
  expect(valueAt(value, valuePath(path)!)).toEqual(found)
})
