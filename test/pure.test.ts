import { expect, test } from 'vitest'
import { importsIn } from './_imports.ts'
import { pureTests, sharedTests, testFiles } from './_pure.ts'

test.each([
  ["import { a } from './a.ts'", ['value ./a.ts']],
  ["import { type A, a } from './a.ts'", ['value ./a.ts']],
  ["import {\n  type A,\n  a,\n} from './a.ts'", ['value ./a.ts']],
  ["import a, { type A } from './a.ts'", ['value ./a.ts']],
  ["import * as a from './a.ts'", ['value ./a.ts']],
  ["import type from './a.ts'", ['value ./a.ts']],
  ["import './a.ts'", ['value ./a.ts']],
  ["export { a } from './a.ts'", ['value ./a.ts']],
  ["export * from './a.ts'", ['value ./a.ts']],
  ["const a = await import('./a.ts')", ['dynamic ./a.ts']],
  ["const a = require('./a.ts')", ['dynamic ./a.ts']],
  ["import a from 'a'\nimport b from 'b'", ['value a', 'value b']],
  ["export type A = B\n\nimport b from 'b'", ['value b']],
  ["export type { A }\nimport b from 'b'", ['value b']],
  ["import type { A } from './a.ts'", ['type ./a.ts']],
  ["import type A from './a.ts'", ['type ./a.ts']],
  ["import { type A, type B } from './a.ts'", ['type ./a.ts']],
  ["import {\n  type A,\n  type B,\n} from './a.ts'", ['type ./a.ts']],
  ["export type { A } from './a.ts'", ['type ./a.ts']],
  ["export const a = 'from'", []],
])('%j imports %j', (text, imports) => {
  expect(importsIn(text).map(({ kind, from }) => `${kind} ${from}`)).toEqual(imports)
})

test('a test that opens the program, a socket, a database or a process only through its imports is not pure', () => {
  const pure = new Set(pureTests())
  const effects = ['server/surfaces/native/tokens', 'cli/models/add', 'console/jobs']
  for (const path of effects.map(name => `test/${name}.test.ts`)) {
    expect(testFiles()).toContain(path)
    expect(pure).not.toContain(path)
  }
  expect(pure).toContain('test/core/ids.test.ts')
})

test('a test that is not pure shares the modules that it imports, unless it changes its process', () => {
  const shared = new Set(sharedTests())
  for (const name of ['server/surfaces/native/tokens', 'core/store/sqlite/migrations', 'e2e/exit-codes'])
    expect(shared).toContain(`test/${name}.test.ts`)
  // The first sets PATH, the second is pure.
  for (const name of ['server/docs/monitoring', 'core/ids']) expect(shared).not.toContain(`test/${name}.test.ts`)
})
