import { expect, test } from 'vitest'
import { z } from 'zod'
import { taskRecords } from '../../../core/tasks/registry.ts'
import { checkRequest } from '../../../core/workflows/diagnose-inputs.ts'

const plain = z.object({ a: z.string().min(1), b: z.int().nullish(), c: z.int().default(3), d: z.unknown() })
const range = z.object({ from: z.int(), to: z.int() }).refine(({ from, to }) => from <= to, 'the wrong way round')

test.for<[about: string, schema: z.ZodType, request: Record<string, unknown>, wrong: string[]]>([
  ['all that is needed', plain, { a: 'x', d: 1 }, []],
  ['everything', plain, { a: 'x', b: null, c: 4, d: null }, []],
  ['more than is known', plain, { a: 'x', d: 1, toString: 1, e: 2 }, []],
  ['something missing', plain, { d: 1 }, ['a']],
  ['anything at all missing', plain, { a: 'x' }, ['d']],
  ['two fields wrong', plain, { a: '', b: 'x', d: 1 }, ['a', 'b']],
  [
    'a field wrong within',
    z.object({ a: z.array(z.object({ b: z.int() })) }),
    { a: [{ b: 1 }, { b: 'x' }] },
    ['a.1.b'],
  ],
  ['more where no more may be', z.strictObject({ a: z.string() }), { a: 'x', b: 1 }, ['']],
  ['more of a type', z.object({}).catchall(z.int()), { a: 'x' }, ['a']],
  ['fields that do not go together', range, { from: 2, to: 1 }, ['']],
  ['fields that do', range, { from: 1, to: 2 }, []],
  ['one of several forms', z.union([plain, range]), { from: 1, to: 2 }, []],
])('%s', ([, schema, request, wrong]) => {
  const found = checkRequest(schema, request)
  expect(found?.issues.map(({ path }) => path.join('.')) ?? []).toEqual(wrong)
  expect(found?.issues).toEqual(schema.safeParse(request).error?.issues)
})

/** Field values, valid and invalid. */
const values = [undefined, null, true, 0, 1, 2.5, -7, '', 'x', '16:9', [], ['x'], [1], {}, { url: 'x' }]
const messages = [
  [{ role: 'user', content: 'x' }],
  [{ role: 'user', content: [{ type: 'text', text: 'x' }] }],
  [{ role: 'user', content: [{ type: 'text' }] }],
  [{ role: 'nobody', content: 'x' }],
]

test.for([...taskRecords])('$id: any field value is judged as by the schema', ({ request }) => {
  const shape = request instanceof z.ZodObject ? request.shape : {}
  const right = Object.fromEntries(
    Object.entries(shape).flatMap(([name, field]) => {
      const value = [...values, ...messages].find(
        one => one !== undefined && one !== null && field.safeParse(one).success,
      )
      return value === undefined ? [] : [[name, value]]
    }),
  )
  for (const name of Object.keys(shape))
    for (const value of [...values, ...messages]) {
      const given: Record<string, unknown> = { ...right, [name]: value }
      if (value === undefined) delete given[name]
      expect(checkRequest(request, given)?.issues).toEqual(request.safeParse(given).error?.issues)
    }
})
