import { expect, test } from 'vitest'
import { importsIn, pureTests, testFiles } from './_pure.ts'

test.each([
  ["import { a } from './a.ts'", ['./a.ts']],
  ["import { type A, a } from './a.ts'", ['./a.ts']],
  ["import {\n  type A,\n  a,\n} from './a.ts'", ['./a.ts']],
  ["import a, { type A } from './a.ts'", ['./a.ts']],
  ["import * as a from './a.ts'", ['./a.ts']],
  ["import './a.ts'", ['./a.ts']],
  ["export { a } from './a.ts'", ['./a.ts']],
  ["export * from './a.ts'", ['./a.ts']],
  ["const a = await import('./a.ts')", ['./a.ts']],
  ["const a = require('./a.ts')", ['./a.ts']],
  ["import a from 'a'\nimport b from 'b'", ['a', 'b']],
  ["import type { A } from './a.ts'", []],
  ["import { type A, type B } from './a.ts'", []],
  ["export type { A } from './a.ts'", []],
])('%j imports %j', (text, imports) => {
  expect(importsIn(text)).toEqual(imports)
})

test('a test that opens the program, a socket, a database or a process only through its imports is not pure', () => {
  const pure = new Set(pureTests())
  const effects = ['server/surfaces/native/tokens', 'core/store/sqlite/migrations', 'e2e/exit-codes', 'console/jobs']
  for (const path of effects.map(name => `test/${name}.test.ts`)) {
    expect(testFiles()).toContain(path)
    expect(pure).not.toContain(path)
  }
  expect(pure).toContain('test/core/ids.test.ts')
})
