import fc from 'fast-check'

type Schema = boolean | { [keyword: string]: unknown }

/** Not the empty key: ajv accepts `{}` for `required: ['']`. */
const names = fc.constantFrom('a', 'b', 'ab', 'kind', '"q"', 'é', 'a\nb', 'constructor')
const some = <T>(value: fc.Arbitrary<T>, of = 3) => fc.option(value, { nil: undefined, freq: of })
const between = (min: number, max: number) => fc.integer({ min, max })

const scalars = fc.oneof(
  fc.constantFrom<unknown>(null, true, false, 0, -1, 1, 12, 1.5, 1e21, '', 'a', 'ab', 'é😀', '"\\\n\u0000', '\ud800'),
  between(-200, 200),
)
const values = fc.oneof(
  { weight: 4, arbitrary: scalars },
  { weight: 1, arbitrary: fc.array(scalars, { maxLength: 2 }) },
  { weight: 1, arbitrary: fc.dictionary(names, scalars, { maxKeys: 2, noNullPrototype: true }) },
)
const types = fc.constantFrom('null', 'boolean', 'integer', 'number', 'string', 'array', 'object')
const typeOrTypes = fc.oneof(types, fc.uniqueArray(types, { minLength: 1, maxLength: 3 }))
const patterns = fc.constantFrom(
  '^[a-z]{2,4}$',
  '^(foo|ba[rz])+$',
  '^\\d{1,3}(?:\\.\\d{2})?$',
  '^x',
  'y$',
  '^[^a-y]{1,3}$',
  '^a|b$',
  '^.{0,2}$',
  '^"[\\\\\\n\\t]?"$',
  '^[à-ü😀-😂]{1,2}$',
  '^(?:a?b?){2}$',
  '^[A-F0-9]{4}-\\w+$',
  '^\\S\\s\\S$',
)
const formats = fc.constantFrom('date', 'time', 'date-time', 'uuid', 'ipv4', 'email', 'ipv6', 'hostname', 'duration')
const bounds = fc.oneof(between(-3, 3), between(-1500, 1500), fc.constantFrom(0.5, -2.25, 0.001, 99.995, 1e9, -1e14))

/** An object whose keys are all optional. */
const keywords = (record: Record<string, fc.Arbitrary<unknown>>): fc.Arbitrary<{ [keyword: string]: unknown }> =>
  fc
    .record(Object.fromEntries(Object.entries(record).map(([key, value]) => [key, some(value)])))
    .map(all => Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined)))

const ofNumbers = { minimum: bounds, maximum: bounds, exclusiveMinimum: bounds, exclusiveMaximum: bounds }
const ofStrings = { minLength: between(0, 3), pattern: patterns }
const ends = between(2, 9)
const annotations = keywords({
  title: fc.constant('x'),
  description: fc.constant('y'),
  default: scalars,
  examples: fc.constant([1]),
  $comment: fc.constant('z'),
  deprecated: fc.boolean(),
  readOnly: fc.boolean(),
  writeOnly: fc.boolean(),
})

const merged = (...parts: fc.Arbitrary<object>[]): fc.Arbitrary<{ [keyword: string]: unknown }> =>
  fc.tuple(...parts).map(all => Object.assign({}, ...all) as { [keyword: string]: unknown })

const { schema } = fc.letrec<{ schema: Schema }>(tie => {
  const child = tie('schema')
  const leaf = fc.oneof(
    { weight: 1, arbitrary: fc.boolean() },
    { weight: 2, arbitrary: fc.record({ type: typeOrTypes, maxLength: ends, maxItems: between(0, 3) }) },
    { weight: 2, arbitrary: fc.record({ enum: fc.array(values, { minLength: 1, maxLength: 5 }) }) },
    { weight: 1, arbitrary: fc.record({ const: values }) },
    { weight: 2, arbitrary: merged(fc.record({ type: fc.constantFrom('integer', 'number') }), keywords(ofNumbers)) },
    { weight: 3, arbitrary: merged(fc.record({ type: fc.constant('string'), maxLength: ends }), keywords(ofStrings)) },
    { weight: 1, arbitrary: fc.record({ type: fc.constant('string'), format: formats }) },
    { weight: 1, arbitrary: fc.record({ $ref: fc.constantFrom('#/$defs/one', '#/$defs/two', '#') }) },
  )
  const properties = fc.dictionary(names, child, { maxKeys: 4, noNullPrototype: true })
  const object = merged(
    fc.record({ type: fc.constant('object'), properties }),
    keywords({
      required: fc.uniqueArray(names, { maxLength: 2 }),
      additionalProperties: fc.oneof(fc.boolean(), child),
    }),
  )
  const array = merged(
    fc.record({ type: fc.constantFrom('array', ['array', 'null']), items: child, maxItems: between(0, 3) }),
    keywords({ minItems: between(0, 2), prefixItems: fc.array(child, { minLength: 1, maxLength: 2 }) }),
  )
  /** Branches that in some cases differ by a constant. */
  const branch = fc.tuple(fc.constantFrom('x', 'y', 'z'), child, fc.boolean()).map(([kind, b, required]) => ({
    type: 'object',
    properties: { kind: { const: kind }, b },
    required: required ? ['kind'] : [],
  }))
  const listOf = (of: fc.Arbitrary<unknown>) => fc.array(of, { minLength: 1, maxLength: 3 })
  const composed = fc.oneof(
    fc.record({ anyOf: listOf(child) }),
    fc.record({ oneOf: fc.oneof(listOf(branch), listOf(child), listOf(fc.record({ type: types, maxLength: ends }))) }),
    fc.record({ allOf: listOf(fc.oneof(child, keywords({ type: typeOrTypes, ...ofNumbers, ...ofStrings }))) }),
  )
  const wild = merged(
    keywords({ type: typeOrTypes, ...ofNumbers, ...ofStrings, enum: fc.array(values, { minLength: 1, maxLength: 6 }) }),
    keywords({ properties, required: fc.uniqueArray(names, { maxLength: 1 }), items: child, minItems: between(0, 2) }),
    keywords({ anyOf: listOf(child), $ref: fc.constantFrom('#/$defs/one', '#/$defs/two') }),
    fc.record({ maxLength: ends, maxItems: between(0, 3) }),
  )
  const any = fc.oneof(
    { depthSize: 'small', withCrossShrink: true, maxDepth: 3 },
    { weight: 3, arbitrary: leaf },
    { weight: 4, arbitrary: object },
    { weight: 2, arbitrary: array },
    { weight: 3, arbitrary: composed },
    { weight: 1, arbitrary: wild },
  )
  return {
    schema: fc.tuple(any, annotations).map(([one, notes]) => (typeof one === 'boolean' ? one : { ...notes, ...one })),
  }
})

/** Schemas over all supported keywords, with two definitions that may refer to each other. */
export const schemas: fc.Arbitrary<{ [keyword: string]: unknown }> = fc
  .record({ root: schema, one: schema, two: schema })
  .map(({ root, one, two }) => ({ ...(typeof root === 'boolean' ? {} : root), $defs: { one, two } }))
