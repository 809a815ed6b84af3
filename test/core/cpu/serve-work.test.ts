import { transferableSymbol, valueSymbol } from 'piscina'
import { expect, test } from 'vitest'
import { serveWork } from '../../../core/cpu/serve-work.ts'
import { Failure } from '../../../core/failure.ts'

const double = { double: ({ of }: { of: number }) => ({ value: 2 * of }) }
const bytes = new Uint8Array([1, 2])
const more = {
  transfer: () => ({ value: { bytes, text: 'x' }, give: [bytes, 'x'] }),
  fail: () => {
    throw new Failure('invalid_value', 'No.', { param: 'of', cause: new Error('why') })
  },
}
const serve = serveWork(double, more)

test('a call runs the function of that name, in any of the records', async () => {
  expect(await serve({ work: 'double', request: { of: 4 } })).toMatchObject({ [valueSymbol]: { value: 8 } })
})

test('the bytes that a function returns are transferred, except those of strings', async () => {
  const answer = await serve({ work: 'transfer', request: {} })
  expect(answer).toMatchObject({ [transferableSymbol]: [bytes.buffer], [valueSymbol]: { value: { text: 'x' } } })
})

test('a failure is returned by its parts, with the stack of its cause', async () => {
  const answer = await serve({ work: 'fail', request: {} })
  expect(answer).toMatchObject({ failure: { code: 'invalid_value', message: 'No.', more: { param: 'of' } } })
  expect(answer).toHaveProperty('failure.more.cause', expect.stringMatching(/^Error: why\n/))
})

test('a function in none of the records is an internal error', async () => {
  expect(await serve({ work: 'halve', request: {} })).toHaveProperty('failure.code', 'internal_error')
})

test('two functions with the same name are refused when the thread starts', () => {
  expect(() => serveWork(double, { double: double.double })).toThrow(
    "Two records of thread work have a function 'double'.",
  )
})
