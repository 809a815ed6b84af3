import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'
import type { Pattern } from '../pattern.ts'

/** How deep conditions may be nested, and how many a node may have. */
const maxDepth = 8
const maxConditions = 64

/** What a condition may ask of a value: exactly one of these. */
const tests = {
  equals: z.unknown().describe('The value is equal to this one, with the same type.'),
  in: z.array(z.unknown()).max(256).describe('The value is equal to one of these.'),
  contains: z.unknown().describe('The value is a text that contains this text, or a list that contains this value.'),
  matches: z
    .string()
    .max(1_000)
    .describe('A part of the text matches this regular expression (RE2: without look-around).'),
  less_than: z
    .unknown()
    .describe(
      'The value is a smaller number, or a text that comes before this one. Beside a number, a text that is one counts.',
    ),
  greater_than: z
    .unknown()
    .describe(
      'The value is a greater number, or a text that comes after this one. Beside a number, a text that is one counts.',
    ),
  exists: z.boolean().describe('`true`: the value is there and is not null. `false`: it is missing or null.'),
}
type TestName = keyof typeof tests
const testNames = Object.keys(tests) as TestName[]

/** A condition on a node, as data: a test of one value, or others that are combined. */
export const Condition = z
  .strictObject({
    value: z.unknown().optional().describe('What is tested, nearly always a reference: `${nodes.check.result.label}`.'),
    ...(Object.fromEntries(testNames.map(name => [name, tests[name].optional()])) as {
      [Name in TestName]: z.ZodOptional<(typeof tests)[Name]>
    }),
    get not(): z.ZodOptional<z.ZodType<Condition>> {
      return (Condition as z.ZodType<Condition>).optional().describe('This condition does not hold.')
    },
    get all(): z.ZodOptional<z.ZodArray<z.ZodType<Condition>>> {
      return z
        .array(Condition as z.ZodType<Condition>)
        .optional()
        .describe('All of these hold; read in order, up to the first that does not.')
    },
    get any(): z.ZodOptional<z.ZodArray<z.ZodType<Condition>>> {
      return z
        .array(Condition as z.ZodType<Condition>)
        .optional()
        .describe('One of these holds.')
    },
  })
  .meta({
    id: 'WorkflowCondition',
    description:
      'A condition: `value` with one of `equals`, `in`, `contains`, `matches`, `less_than`, `greater_than` and `exists`; or `not`, `all` or `any` of other conditions.',
  })

export interface Condition extends Partial<Record<Exclude<TestName, 'in' | 'matches' | 'exists'>, unknown>> {
  value?: unknown
  in?: unknown[] | undefined
  matches?: string | undefined
  exists?: boolean | undefined
  not?: Condition | undefined
  all?: Condition[] | undefined
  any?: Condition[] | undefined
}

const combinations = ['not', 'all', 'any'] as const

/** The conditions within one, itself first, each with its place in the definition: `when.all[0]`. */
export function* conditionsIn(
  condition: Condition,
  place = 'when',
  depth = 1,
): Generator<{ condition: Condition; place: string; depth: number }> {
  yield { condition, place, depth }
  if (depth > maxDepth) return
  if (condition.not) yield* conditionsIn(condition.not, `${place}.not`, depth + 1)
  for (const name of ['all', 'any'] as const)
    for (const [at, one] of (condition[name] ?? []).entries())
      yield* conditionsIn(one, `${place}.${name}[${at}]`, depth + 1)
}

/** What is wrong with the form of a condition, as a part of a sentence, and where; undefined if nothing is. */
export function conditionFault(condition: Condition): { place: string; message: string } | undefined {
  let count = 0
  for (const { condition: one, place, depth } of conditionsIn(condition)) {
    if (depth > maxDepth) return { place, message: `conditions are nested more than ${maxDepth} deep` }
    if (++count > maxConditions) return { place, message: `a node has more than ${maxConditions} conditions` }
    const asked = testNames.filter(name => one[name] !== undefined)
    const combined = combinations.filter(name => one[name] !== undefined)
    const given = [...asked, ...combined]
    if (given.length > 1) return { place, message: `'${given[0]}' and '${given[1]}' stand side by side; use 'all'` }
    if (given.length === 0)
      return { place, message: `it tests nothing. Add one of ${[...testNames, ...combinations].join(', ')}` }
    if (asked.length === 1 && !Object.hasOwn(one, 'value'))
      return { place, message: `'${asked[0]}' has no 'value' to test` }
    if (combined.length === 1 && Object.hasOwn(one, 'value'))
      return { place, message: `'value' has no meaning beside '${combined[0]}'` }
  }
  return undefined
}

/** How a condition reads its values. */
export interface ConditionReader {
  /** Returns the value with its references replaced. Throws if one of them refers to something that does not exist. */
  read: (value: unknown) => unknown
  /** The same, with undefined for something that does not exist. */
  find: (value: unknown) => unknown
  /** Compiles the pattern of `matches`; needed for conditions that have one. Throws for one that is none. */
  pattern?: ((source: string) => Pick<Pattern, 'test'> & Partial<Pick<Pattern, 'size'>>) | undefined
}

/** Whether the condition needs `pattern` of its reader. */
export const hasPattern = (condition: Condition): boolean =>
  [...conditionsIn(condition)].some(({ condition: { matches } }) => matches !== undefined)

/** The longest text that `matches` searches, in characters. */
const maxMatchedLength = 16_384
/** Characters times parts of the pattern, for one condition: it takes a few milliseconds at most. */
const maxMatchWork = 200_000
/** How many items of a list `contains` compares. */
const maxItems = 10_000

/**
 * Whether the condition holds. Values are read in order and only as far as the answer needs them. Throws ConditionFault for a
 * value that cannot be tested, and what `read` throws.
 */
export function holds(condition: Condition, reader: ConditionReader): boolean {
  const { not, all, any } = condition
  if (not) return !holds(not, reader)
  if (all) return all.every(one => holds(one, reader))
  if (any) return any.some(one => holds(one, reader))
  if (condition.exists !== undefined) return ((reader.find(condition.value) ?? null) !== null) === condition.exists
  const value = reader.read(condition.value)
  if (condition.matches !== undefined && typeof value === 'string' && value.length > maxMatchedLength)
    throw new ConditionFault(
      `'matches' looks at texts of up to ${maxMatchedLength} characters, and this one has ${value.length}. Refer to a smaller part.`,
    )
  if (Array.isArray(value) && condition.contains !== undefined && value.length > maxItems)
    throw new ConditionFault(`'contains' looks at lists of up to ${maxItems} items, and this one has ${value.length}.`)
  const name = testNames.find(one => condition[one] !== undefined)!
  return passes(value, { [name]: reader.read(condition[name]) }, boundedPattern(reader, value))
}

/** The patterns of a reader, for a text that the event loop searches. */
function boundedPattern({ pattern }: ConditionReader, value: unknown): ConditionReader['pattern'] {
  return (
    pattern &&
    (source => {
      const found = pattern(source)
      if (typeof value === 'string' && value.length * (found.size ?? 1) > maxMatchWork)
        throw new ConditionFault(
          `A text of ${value.length} characters is too long for this pattern. Refer to a smaller part, or use text/extract before.`,
        )
      return found
    })
  )
}

/** A test of one value, whose own values need not be read: exactly one member. */
export type ValueTest = Partial<Record<Exclude<TestName, 'in' | 'matches' | 'exists'>, unknown>> &
  Pick<Condition, 'in' | 'matches' | 'exists'>

/** Whether a value passes a test. Throws ConditionFault for a value that cannot be tested. */
export function passes(value: unknown, test: ValueTest, pattern: ConditionReader['pattern']): boolean {
  if (test.exists !== undefined) return (value !== null && value !== undefined) === test.exists
  if (test.in !== undefined) return test.in.some(one => isDeepStrictEqual(value, one))
  if (test.equals !== undefined) return isDeepStrictEqual(value, test.equals)
  if (test.contains !== undefined) return contains(value, test.contains)
  if (test.matches !== undefined) return matches(value, pattern!(test.matches))
  if (test.less_than !== undefined) return order(value, test.less_than) < 0
  return order(value, test.greater_than) > 0
}

/** A value that cannot be tested in this way. Its message is the error of the node. */
export class ConditionFault extends Error {
  override readonly name = 'ConditionFault'
}

function contains(value: unknown, part: unknown): boolean {
  if (Array.isArray(value)) return value.some(one => isDeepStrictEqual(one, part))
  if (typeof value === 'string' && typeof part === 'string') return value.includes(part)
  // Nothing is in something that is not there.
  if (value === null) return false
  throw new ConditionFault(`'contains' looks for a text in a text, or for a value in a list, not in ${shown(value)}.`)
}

function matches(value: unknown, pattern: Pick<Pattern, 'test'>): boolean {
  if (value === null) return false
  if (typeof value !== 'string') throw new ConditionFault(`'matches' looks at texts, not at ${shown(value)}.`)
  return pattern.test(value)
}

/** Which comes first: negative, zero or positive. Two texts are compared as texts, so that dates can be. */
function order(value: unknown, other: unknown): number {
  if (typeof value === 'string' && typeof other === 'string') return value < other ? -1 : value > other ? 1 : 0
  return numberOf(value) - numberOf(other)
}

function numberOf(value: unknown): number {
  if (typeof value === 'number') return value
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : Number.NaN
  if (Number.isNaN(number)) throw new ConditionFault(`${shown(value)} is not a number, so it cannot be compared.`)
  return number
}

function shown(value: unknown): string {
  const text = JSON.stringify(value)
  return text.length > 80 ? `${text.slice(0, 80)}…` : text
}
