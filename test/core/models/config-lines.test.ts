import { expect, test } from 'vitest'
import { configLines } from '../../../core/models/config-file.ts'

test.each([
  ['nothing', 'a\nb\n', 'a\nb\n', [], []],
  ['an entry at the end', 'models:\n  - id: a\n', 'models:\n  - id: a\n  - id: b\n', ['  - id: b'], []],
  ['an entry in the middle', 'a\nc\n', 'a\nb\nc\n', ['b'], []],
  ['a first file', '', 'models:\n  - id: a\n', ['models:', '  - id: a'], []],
  ['a removed entry', 'a\nb\nc\n', 'a\nc\n', [], ['b']],
  ['a changed line', 'a\nb: 1\nc\n', 'a\nb: 2\nc\n', ['b: 2'], ['b: 1']],
  ['lines that repeat', 'a\na\n', 'a\na\na\n', ['a'], []],
  ['line ends of Windows', 'a\r\nb\r\n', 'a\r\nb\r\nc\r\n', ['c'], []],
])('%s', (_, before, after, added, removed) => expect(configLines(before, after)).toEqual({ added, removed }))
