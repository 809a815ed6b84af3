import { expect, test } from 'vitest'
import { z } from 'zod'
import { formValues } from '../../../../server/http/body/multipart.ts'

const shape = {
  prompt: z.string().min(1),
  user: z.string().nullish(),
  label: z.union([z.string(), z.null()]),
  n: z.int().max(10).nullish(),
  temperature: z.number().optional(),
  stream: z.boolean().nullish(),
  tags: z.array(z.enum(['a', 'b'])),
  at: z.array(z.number()),
  size: z.union([z.number(), z.string()]),
  expires_after: z.object({ anchor: z.string(), seconds: z.int() }),
}

test.each<[name: string, texts: string[], expected: unknown]>([
  ['prompt', ['a cat'], 'a cat'],
  ['prompt', ['42'], '42'],
  ['prompt', ['null'], 'null'],
  ['prompt', ['a', 'b'], ['a', 'b']],
  ['user', ['null'], null],
  ['user', ['nullable'], 'nullable'],
  ['label', ['null'], null],
  ['n', ['2'], 2],
  ['n', ['null'], null],
  ['n', [''], null],
  ['user', [''], ''],
  ['n', ['99'], 99],
  ['n', ['two'], 'two'],
  ['temperature', ['0'], 0],
  ['temperature', ['1e-3'], 0.001],
  ['temperature', [''], ''],
  ['stream', ['true'], true],
  ['stream', ['false'], false],
  ['tags', ['a', 'b'], ['a', 'b']],
  ['tags', ['a'], ['a']],
  ['at', ['1'], [1]],
  ['at', ['1', '2.5'], [1, 2.5]],
  ['size', ['5'], '5'],
  ['unknown', ['5'], '5'],
  ['constructor', ['5'], '5'],
])('%s as %j', (name, texts, expected) => {
  expect(formValues(new Map([[name, texts]]), shape)).toEqual({ [name]: expected })
})

test('members of an object are listed under its name', () => {
  const fields = new Map([
    ['expires_after[anchor]', ['created_at']],
    ['expires_after[seconds]', ['3600']],
  ])
  expect(formValues(fields, shape)).toEqual({ expires_after: { anchor: 'created_at', seconds: 3600 } })
})

test('no name reaches a prototype', () => {
  const body = formValues(
    new Map([
      ['__proto__', ['x']],
      ['__proto__[admin]', ['true']],
    ]),
    shape,
  )
  expect(Object.getPrototypeOf(body)).toBeNull()
  expect(({} as { admin?: unknown }).admin).toBeUndefined()
})
