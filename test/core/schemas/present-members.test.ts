import fc from 'fast-check'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { ChatRequest } from '../../../core/schemas/chat.ts'
import { CompletionRequest } from '../../../core/schemas/completion.ts'
import { schemaForPresent } from '../../../core/schemas/present-members.ts'

const message = { role: 'user', content: 'Hello' }
const values = [undefined, null, 0, 1, 0.5, 'text', true, [], {}, [message], { include_usage: true }, [{ type: 'x' }]]

test.each([
  ['chat', ChatRequest, { model: 'm', messages: [message] }],
  ['completion', CompletionRequest, { model: 'm', prompt: 'p' }],
] as const)('a reduced schema reads and refuses what the whole one of a %s does', (_name, schema, base) => {
  const members = fc.record(
    Object.fromEntries([...Object.keys(schema.shape), 'unknown'].map(name => [name, fc.constantFrom(...values)])),
    { requiredKeys: [] },
  )
  fc.assert(
    fc.property(members, fc.boolean(), (some, complete) => {
      const body = complete ? { ...base, ...some } : some
      const whole = schema.safeParse(body)
      const reduced = schemaForPresent(schema, body).safeParse(body)
      expect(reduced.data).toStrictEqual(whole.data)
      expect(reduced.error?.issues).toStrictEqual(whole.error?.issues)
    }),
    { numRuns: 60 },
  )
})

const wide = () =>
  z.strictObject({
    ...Object.fromEntries(Array.from({ length: 20 }, (_, at) => [`member${at}`, z.int().optional()])),
    required: z.string(),
    limit: z.int().default(7),
    empty: z.string().optional().default(''),
    any: z.unknown(),
  })

test('it has the members that the value has, and those that may not be absent', () => {
  const schema = wide()
  const reduced = schemaForPresent(schema, { member3: 1 })
  expect(Object.keys(reduced.shape)).toEqual(['member3', 'required', 'limit', 'empty', 'any'])
  expect(schemaForPresent(schema, { member3: 5 })).toBe(reduced)
  expect(reduced.parse({ required: 'r', any: 1 })).toEqual({ required: 'r', limit: 7, empty: '', any: 1 })
  expect(schema.safeParse({ required: 'r', any: 1, more: 1 }).error?.issues).toEqual(
    schemaForPresent(schema, { required: 'r', any: 1, more: 1 }).safeParse({ required: 'r', any: 1, more: 1 }).error
      ?.issues,
  )
})

test('a bounded number of sets of members is remembered', () => {
  const schema = wide()
  const made = Array.from({ length: 200 }, (_, at) =>
    schemaForPresent(
      schema,
      Object.fromEntries(Array.from(at.toString(2), (bit, place) => [`member${place}${bit === '1' ? '' : '-'}`, 1])),
    ),
  )
  const reduced = new Set(made.filter(one => one !== schema))
  expect(reduced.size).toBe(64)
  expect(made.at(-1)).toBe(schema)
})

test('small schemas and those with conditions across members stay as they are', () => {
  const small = z.object({ a: z.string(), b: z.string().optional() })
  expect(schemaForPresent(small, { a: 'x' })).toBe(small)
  const checked = wide().refine(({ required }) => required !== '')
  expect(schemaForPresent(checked, { required: '' })).toBe(checked)
  expect(schemaForPresent(ChatRequest, 'text')).toBe(ChatRequest)
})
