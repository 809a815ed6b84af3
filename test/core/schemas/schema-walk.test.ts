import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { kindsOf, kindsText, membersAt, walk } from '../../../core/schemas/schema-walk.ts'
import { taskRecords } from '../../../core/tasks/registry.ts'
import type { ReferenceStep } from '../../../core/workflows/references.ts'

/** The types allowed at a path, in words; 'missing': there is no such path. */
function at(schema: z.ZodType, path: readonly ReferenceStep[]): string {
  const found = walk(schema, path)
  return found === 'missing' ? found : kindsText(kindsOf(found))
}

const Tree: z.ZodType = z.object({
  name: z.string(),
  get children() {
    return z.array(Tree).nullish()
  },
})
const kinds = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('circle'), radius: z.number() }),
  z.object({ kind: z.literal('square'), side: z.int(), radius: z.null() }),
])

describe('a path', () => {
  test.for<[about: string, schema: z.ZodType, path: ReferenceStep[], found: string]>([
    ['the whole', z.object({}), [], 'object'],
    ['a text', z.string().min(1).regex(/a/).regex(/b/), [], 'string'],
    ['a number', z.number().min(1), [], 'number'],
    ['a whole number', z.int().min(1), [], 'integer'],
    ['a whole number, said later', z.number().int().min(1), [], 'integer'],
    ['a truth value', z.boolean(), [], 'boolean'],
    ['nothing', z.null(), [], 'null'],
    ['one of some texts', z.enum(['a', 'b']), [], 'string'],
    ['one text', z.literal('a'), [], 'string'],
    ['one number', z.literal(3), [], 'number'],
    ['literals of several types', z.literal([1, 1.5, 'a', null]), [], 'integer or number or string or null'],
    ['into one of some texts', z.literal(['a', 1]), ['x'], 'missing'],
    ['anything', z.unknown(), [], 'anything'],
    ['within anything', z.object({ a: z.any() }), ['a', 'b', 0], 'anything'],
    ['what cannot be told', z.custom(() => true), ['a'], 'anything'],
    ['what is made of something else', z.string().transform(Number), [], 'anything'],
    ['both at once', z.intersection(z.object({ a: z.string() }), z.object({ b: z.string() })), ['a'], 'anything'],
    ['a member', z.object({ a: z.object({ b: z.string() }) }), ['a', 'b'], 'string'],
    ['one that is not there', z.object({ a: z.string() }), ['b'], 'missing'],
    ['one of every object', z.object({}), ['toString'], 'missing'],
    ['a number in an object', z.object({ a: z.string() }), [0], 'missing'],
    ['one more, where more is allowed', z.looseObject({ a: z.string() }), ['b', 'c'], 'anything'],
    ['one more, of a type', z.object({ a: z.string() }).catchall(z.int()), ['b'], 'integer'],
    ['one more, where it is forbidden', z.strictObject({ a: z.string() }), ['b'], 'missing'],
    ['of a record', z.record(z.string(), z.array(z.int())), ['any', 7], 'integer'],
    ['a number in a record', z.record(z.string(), z.int()), [0], 'missing'],
    ['of a list', z.array(z.string()), [3], 'string'],
    ['a name in a list', z.array(z.string()), ['length'], 'missing'],
    ['of a tuple', z.tuple([z.string(), z.int()]), [1], 'integer'],
    ['behind a tuple', z.tuple([z.string()]), [1], 'missing'],
    ['behind a tuple that goes on', z.tuple([z.string()], z.int()), [4], 'integer'],
    ['into a text', z.string(), ['length'], 'missing'],
    ['may be absent', z.object({ a: z.string().optional() }), ['a'], 'string'],
    ['may be null', z.object({ a: z.string().nullish() }), ['a'], 'string or null'],
    ['has a default', z.object({ a: z.int().default(1).describe('How many.') }), ['a'], 'integer'],
    ['cannot be changed', z.object({ a: z.array(z.int()).readonly() }), ['a', 0], 'integer'],
    ['of a union', z.union([z.string(), z.array(z.string())]), [], 'string or array'],
    ['that one of several has', z.union([z.string(), z.array(z.int())]), [0], 'integer'],
    ['that several have', kinds, ['radius'], 'number or null'],
    ['that none of several has', kinds, ['weight'], 'missing'],
    ['of a union with anything', z.union([z.string(), z.looseObject({})]), ['x'], 'anything'],
    ['of what holds itself', Tree, ['children', 0, 'children', 2, 'name'], 'string'],
  ])('%s', ([, schema, path, found]) => expect(at(schema, path)).toBe(found))

  test('an endless schema without a value is not followed for ever', () => {
    const Endless: z.ZodType = z.lazy(() => z.union([z.string(), Endless]))
    expect(at(Endless, [])).toBe('anything')
  })
})

test.for<[about: string, schema: z.ZodType, names: string[]]>([
  ['of an object', z.object({ a: z.string(), b: z.string().optional() }).meta({ description: 'Two.' }), ['a', 'b']],
  ['of each of several', kinds, ['kind', 'radius', 'kind', 'side', 'radius']],
  ['of a text', z.string(), []],
  ['of anything', z.intersection(z.object({}), z.object({})), []],
])('the members %s', ([, schema, names]) => expect(membersAt(schema)).toEqual(names))

interface Json {
  type?: string | string[]
  properties?: Record<string, Json>
  additionalProperties?: Json | boolean
  items?: Json
  anyOf?: Json[]
  oneOf?: Json[]
  $ref?: string
  $defs?: Record<string, Json>
}

/** Every path of the JSON Schema of the same type, and its types. */
function* places(root: Json, of: Json[], path: ReferenceStep[] = []): Generator<[ReferenceStep[], string]> {
  const open = (one: Json): Json[] => {
    const target = one.$ref === undefined ? one : root.$defs![one.$ref.replace('#/$defs/', '')]!
    return (target.anyOf ?? target.oneOf)?.flatMap(open) ?? [target]
  }
  const here = of.flatMap(open)
  const types = here.flatMap(({ type }) => type)
  yield [path, types.includes(undefined) ? 'anything' : [...new Set(types)].join(' or ')]
  const within = new Map<ReferenceStep, Json[]>()
  const add = (step: ReferenceStep, one: Json) => void within.set(step, [...(within.get(step) ?? []), one])
  for (const { properties, items } of here) {
    for (const [name, one] of Object.entries(properties ?? {})) add(name, one)
    if (items) add(0, items)
  }
  const others = here.flatMap(({ additionalProperties: more }) => (typeof more === 'object' ? [more] : []))
  // Members of any name are all alike.
  if (path.length === 0 && others.length > 0) for (const one of others) add('any', one)
  if (path.length === 0 || !here.some(({ additionalProperties: more }) => more !== undefined && more !== false))
    for (const [step, those] of within) yield* places(root, those, [...path, step])
}

test.for(
  taskRecords.flatMap(({ id: task, request, result }) => [
    [task, 'input', request] as const,
    [task, 'output', result] as const,
  ]),
)('%s: %s is followed as in its JSON Schema', ([, io, schema]) => {
  const json = z.toJSONSchema(schema, { io, unrepresentable: 'any' }) as Json
  const said = [...places(json, [json])]
  expect(said.length).toBeGreaterThan(1)
  expect(said.map(([path]) => [path.join('.'), at(schema, path)])).toEqual(
    said.map(([path, kind]) => [path.join('.'), kind]),
  )
})
