import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parameterValues, readParameter, valueOf } from '../../../cli/workflows/parameters.ts'
import type { Parameter } from '../../../core/dag/definition.ts'
import { temporaryFolder } from '../_infer.ts'
import { png } from '../_jobs.ts'

const declared = (type: Parameter['type'] | undefined): Parameter | undefined => (type ? { type } : undefined)

test.each<[type: Parameter['type'] | undefined, text: string, value: unknown]>([
  ['string', 'a cat', 'a cat'],
  ['string', '3', '3'],
  ['string', '{"a":1}', '{"a":1}'],
  ['integer', '3', 3],
  ['integer', '3.5', '3.5'],
  ['integer', 'many', 'many'],
  ['number', '3.5', 3.5],
  ['boolean', 'true', true],
  ['boolean', 'yes', 'yes'],
  ['array', '["a","b"]', ['a', 'b']],
  ['array', 'a,b', 'a,b'],
  ['object', '{"a":1}', { a: 1 }],
  ['object', '[1]', '[1]'],
  ['image', 'https://example.com/cat.png', 'https://example.com/cat.png'],
  ['file', 'file-01K2ZZZZZZ7QK2M9XDAAAAAAAA', 'file-01K2ZZZZZZ7QK2M9XDAAAAAAAA'],
  [undefined, '3', 3],
  [undefined, 'a cat', 'a cat'],
  [undefined, '', ''],
  [undefined, 'a=b', 'a=b'],
])('a %s from %j', (type, text, value) => {
  expect(valueOf({ name: 'x', text }, declared(type))).toEqual(value)
})

test('a file becomes its text, its JSON where that is the type, or an image as a data: URL', () => {
  const folder = temporaryFolder()
  const file = (name: string, content: string | Uint8Array) => {
    writeFileSync(join(folder, name), content)
    return `@${join(folder, name)}`
  }
  expect(valueOf({ name: 'x', text: file('a.txt', 'two\nlines\n') }, declared('string'))).toBe('two\nlines')
  expect(valueOf({ name: 'x', text: file('a.json', '["a"]') }, declared('array'))).toEqual(['a'])
  expect(valueOf({ name: 'x', text: file('b.txt', '["a"]') }, declared('string'))).toBe('["a"]')
  const url = `data:image/png;base64,${png.toString('base64')}`
  expect(valueOf({ name: 'x', text: file('cat.png', png) }, declared('image'))).toBe(url)
  // The type is detected from the first bytes, because names are unreliable.
  const lie = { name: 'x', text: file('lie.png', 'text') }
  expect(() => valueOf(lie, declared('image'))).toThrow(
    /is not a JPEG, PNG, WebP, GIF or AVIF image, which --param x needs\./,
  )
  expect(() => valueOf({ name: 'x', text: 'cat.png' }, declared('image'))).toThrow(/Give a file as --param x=@path/)
  const noise = Buffer.concat([png, Buffer.alloc(5 << 20)])
  expect(valueOf({ name: 'x', text: file('large.png', noise) }, declared('image'))).toMatchObject({ type: 'image/png' })
})

test('values on the command line override those of a file', () => {
  const given = readParameter('b=2', readParameter('a=x'))
  expect(parameterValues({ b: 1, c: 3 }, given, { a: { type: 'string' } })).toEqual({ a: 'x', b: 2, c: 3 })
  expect(() => readParameter('b')).toThrow(/name=value/)
})
