import { expect, test } from 'vitest'
import { shapesWhenRead } from '../../bin/shapes-when-read.ts'

const ours = `import {\n  namedObject,\n  optionalObject,\n} from './schemas/fields.ts'\n`

test.each([
  ['a schema of zod', 'z.object({ a: b })', 'z.object(() => ({ a: b }))'],
  [
    'a strict one, with methods after it',
    "z.strictObject({ a }).meta({ id: 'A' })",
    "z.strictObject(() => ({ a })).meta({ id: 'A' })",
  ],
  ['one in another', 'z.object({ a: z.looseObject({ b }) })', 'z.object(() => ({ a: z.looseObject(() => ({ b })) }))'],
  ['a shape that has a name', 'z.object(shape)', 'z.object(shape)'],
  ['a function that is not ours', "namedObject('A', { a })", "namedObject('A', { a })"],
  [
    'text beyond ASCII before it',
    "const é: string = '√😀'; z.object({ a })",
    "const é: string = '√😀'; z.object(() => ({ a }))",
  ],
  [
    'text that looks like one',
    '// z.object({ a })\nconst a = "z.object({ a })"',
    '// z.object({ a })\nconst a = "z.object({ a })"',
  ],
] as const)('%s', (_, source, changed) => {
  expect(shapesWhenRead(source)).toBe(changed)
})

test('of functions that are ours the last argument is the shape', () => {
  expect(shapesWhenRead(`${ours}namedObject('A', 'An A.', { b: optionalObject('A B.', { c }) })`)).toBe(
    `${ours}namedObject('A', 'An A.', () => ({ b: optionalObject('A B.', () => ({ c })) }))`,
  )
})
