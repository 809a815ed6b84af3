import type { z } from 'zod'
import { Failure, type FailureCode, type FailureDetail, type ValidationDetail } from '../failure.ts'
import { nearest } from '../nearest.ts'
import { schemaForPresent } from './present-members.ts'
import { membersAt } from './schema-walk.ts'

type Issue = z.core.$ZodIssue

/**
 * Turns zod issues into one Failure with the codes of the OpenAI API. The message is about the first issue; `details`
 * lists all of them when there are several. With the `schema` that was checked, unknown members are reported with the
 * most similar known name.
 */
export function failureOfIssues(error: { issues: Issue[] }, input: unknown, schema?: z.core.$ZodType): Failure {
  const issues = error.issues
    .slice(0, 20)
    .map(issue => deepest(issue))
    .flatMap(eachKey)
    .slice(0, 20)
  const found = issues.map(issue => finding(issue, input, schema))
  const [first] = found
  return new Failure(first!.code, first!.message, {
    param: first!.path || undefined,
    details: found.length > 1 ? found : undefined,
    validation: issues.map((issue, at) => validationDetail(issue, valueAt(input, issue.path), found[at]!.message)),
    cause: undefined,
  })
}

/** Rounds in which members that are null are left out: those inside of unions may be found only one after another. */
const nullRounds = 4

/**
 * Returns the value as the schema reads it. A member that is null where the schema has no null is absent: many clients
 * send null for what they leave out. Throws the Failure of its issues.
 */
export function parsed<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  let read = value
  for (let round = 1; ; round++) {
    const { data, error } = schemaForPresent(schema, read).safeParse(read)
    if (!error) return data!
    const present = round <= nullRounds ? withoutNulls(read, error.issues) : read
    if (present === read) throw failureOfIssues(error, read, schema)
    read = present
  }
}

/** Returns a copy without the members that are null at the places of issues; the value itself if there are none. */
function withoutNulls(value: unknown, issues: readonly Issue[]): unknown {
  const paths = issues.flatMap(issue => nullPaths(value, issue, []))
  return paths.reduce(without, value)
}

function nullPaths(value: unknown, issue: Issue, base: readonly PropertyKey[]): (readonly PropertyKey[])[] {
  const path = [...base, ...issue.path]
  if (path.length > 0 && valueAt(value, path) === null) return [path]
  if (issue.code !== 'invalid_union') return []
  return issue.errors.flat().flatMap(inner => nullPaths(value, inner, path))
}

/** Returns a copy without one member, which shares all else. Entries of lists stay. */
function without(value: unknown, [key, ...rest]: readonly PropertyKey[]): unknown {
  if (!isContainer(value) || !Object.hasOwn(value, key!)) return value
  if (rest.length === 0) {
    if (Array.isArray(value)) return value
    const { [key!]: _, ...others } = value
    return others
  }
  const inner = without(value[key!], rest)
  if (inner === value[key!]) return value
  return Array.isArray(value) ? value.with(Number(key), inner) : { ...value, [key!]: inner }
}

const isContainer = (value: unknown): value is Record<PropertyKey, unknown> =>
  typeof value === 'object' && value !== null

/** Formats a path as `messages[0].content`, like the official clients. */
export const placeOf = (path: readonly PropertyKey[]): string =>
  path.reduce<string>(
    (text, part) => (typeof part === 'number' ? `${text}[${part}]` : text ? `${text}.${String(part)}` : String(part)),
    '',
  )

/**
 * Returns, for a union, the issue of the branch that the caller probably meant: an issue about a value rather than a
 * type, and among several the one that is deepest in the input.
 */
function deepest(issue: Issue, base: readonly PropertyKey[] = []): Issue {
  const here = { ...issue, path: [...base, ...issue.path] }
  if (issue.code !== 'invalid_union' || issue.errors.length === 0) return here
  const rank = (found: Issue) => (found.code === 'invalid_type' ? 0 : 1_000) + found.path.length
  const [best] = issue.errors
    .filter(branch => branch.length > 0)
    .map(branch => deepest(branch[0]!, here.path))
    .toSorted((a, b) => rank(b) - rank(a))
  return best && rank(best) > here.path.length ? best : here
}

/** Splits an issue about several unknown members into one for each, whose path includes the member. */
const eachKey = (issue: Issue): Issue[] =>
  issue.code === 'unrecognized_keys'
    ? issue.keys.map(key => ({ ...issue, keys: [key], path: [...issue.path, key] }))
    : [issue]

const nameOf = (value: unknown): string =>
  value === null
    ? 'null'
    : Array.isArray(value)
      ? 'an array'
      : typeof value === 'object'
        ? 'an object'
        : `a ${typeof value}`

function valueAt(input: unknown, path: readonly PropertyKey[]): unknown {
  let value = input
  for (const part of path) {
    if (!isContainer(value) || !Object.hasOwn(value, part)) return undefined
    value = value[part]
  }
  return value
}

function finding(issue: Issue, input: unknown, schema: z.core.$ZodType | undefined): FailureDetail<FailureCode> {
  const path = placeOf(issue.path)
  const name = path ? `'${path}'` : 'The body'
  const value = valueAt(input, issue.path)
  const say = (code: FailureCode, message: string): FailureDetail<FailureCode> => ({ path, message, code })
  if (
    (issue.code === 'invalid_type' || issue.code === 'invalid_value' || issue.code === 'invalid_union') &&
    value === undefined &&
    path
  )
    return say('missing_required_parameter', `Missing required parameter: ${name}.`)
  switch (issue.code) {
    case 'invalid_type':
      return say('invalid_type', `${name} must be ${article(issue.expected)}, not ${nameOf(value)}.`)
    case 'too_big': {
      if (issue.origin === 'string')
        return say('string_above_max_length', `${name} is longer than ${issue.maximum} characters.`)
      if (issue.origin === 'array')
        return say('array_above_max_length', `${name} has more than ${issue.maximum} entries.`)
      return say('invalid_value', `${name} must be at most ${issue.maximum}.`)
    }
    case 'too_small':
      return say(
        'invalid_value',
        issue.origin === 'number' || issue.origin === 'int'
          ? `${name} must be at least ${issue.minimum}.`
          : `${name} must not be empty.`,
      )
    case 'invalid_value':
      return say('invalid_value', `${name} must be one of: ${issue.values.map(String).join(', ')}.`)
    case 'unrecognized_keys': {
      const parent = issue.path.slice(0, -1) as (string | number)[]
      return unknownField(placeOf(parent), issue.keys[0]!, schema ? membersAt(schema, parent) : [])
    }
    case 'invalid_key':
      return say('invalid_value', `${name}: ${issue.issues[0]?.message ?? issue.message}`)
    case 'invalid_union':
      // No branches: a discriminated union whose discriminator has an unknown value.
      if (issue.errors.length === 0)
        return say('invalid_value', `${name} has an unknown value: ${JSON.stringify(value)?.slice(0, 60)}.`)
      return say('invalid_type', `${name} is ${nameOf(value)} of a form that is not allowed.`)
    case 'custom':
      if (issue.params?.notImplemented)
        return say('unsupported_parameter', `${name} is not supported yet. Leave it out.`)
      if (issue.params?.unixSeconds)
        return say(
          'invalid_value',
          `${name} is in Unix seconds; ${String(value)} looks like milliseconds. Divide it by 1000.`,
        )
      return say('invalid_value', `${name}: ${issue.message}`)
    default:
      return say('invalid_value', `${name}: ${issue.message}`)
  }
}

const article = (expected: string): string => {
  const word = expected === 'int' ? 'integer' : expected === 'record' ? 'object' : expected
  return `${/^[aeio]/.test(word) ? 'an' : 'a'} ${word}`
}

/** Names are cut to this length before they are compared: the time grows with the product of both lengths. */
const longestName = 64

/** Reports a field that a request must not have, with the most similar known name. */
export function unknownField(parent: string, name: string, known: Iterable<string>): FailureDetail<FailureCode> {
  const path = parent === '' ? name : `${parent}.${name}`
  const similar = nearest(name.slice(0, longestName), known)
  const advice = similar === undefined ? 'Leave it out.' : `Did you mean '${similar}'?`
  return {
    code: 'unknown_parameter',
    path,
    message: `Unknown parameter: '${path.length > 128 ? `${path.slice(0, 128)}…` : path}'. ${advice}`,
  }
}

/** Longer values are cut before they are sent back: a `data:` URL may hold a whole image. */
const shownText = 100
const shown = (value: unknown): unknown => {
  if (typeof value === 'string') return value.length > shownText ? `${value.slice(0, shownText)}…` : value
  if (value === null || typeof value !== 'object') return value
  const text = JSON.stringify(value)
  return text.length > shownText ? `${text.slice(0, shownText)}…` : value
}

/** Returns an issue in the form of FastAPI. `message` is the sentence of our own API for the same issue. */
function validationDetail(issue: z.core.$ZodIssue, value: unknown, message: string): ValidationDetail {
  const detail = (type: string, msg: string, ctx?: Record<string, unknown>): ValidationDetail => ({
    loc: ['body', ...issue.path.map(part => (typeof part === 'symbol' ? String(part) : part))],
    msg,
    type,
    ...(ctx ? { ctx } : {}),
    ...(value === undefined ? {} : { input: shown(value) }),
  })
  if (value === undefined) return detail('missing', 'Field required')
  switch (issue.code) {
    case 'invalid_type': {
      const kind = issue.expected === 'boolean' ? 'bool' : issue.expected === 'number' ? 'float' : issue.expected
      return detail(`${kind}_type`, `Input should be a valid ${typeNames[issue.expected] ?? issue.expected}`)
    }
    case 'too_big':
    case 'too_small': {
      const tooBig = issue.code === 'too_big'
      const bound = tooBig ? issue.maximum : issue.minimum
      if (issue.origin === 'string')
        return detail(
          tooBig ? 'string_too_long' : 'string_too_short',
          `String should have at ${tooBig ? 'most' : 'least'} ${bound} characters`,
          { [tooBig ? 'max_length' : 'min_length']: bound },
        )
      return detail(
        tooBig ? 'less_than_equal' : 'greater_than_equal',
        `Input should be ${tooBig ? 'less' : 'greater'} than or equal to ${bound}`,
        { [tooBig ? 'le' : 'ge']: bound },
      )
    }
    case 'unrecognized_keys':
      return detail('extra_forbidden', 'Extra inputs are not permitted')
    case 'invalid_value': {
      const expected = issue.values.map(one => `'${String(one)}'`).join(', ')
      return detail('literal_error', `Input should be ${expected}`, { expected })
    }
    default:
      return detail('value_error', message)
  }
}

/** FastAPI's names of types. */
const typeNames: Record<string, string> = { int: 'integer', boolean: 'boolean', number: 'number', record: 'dictionary' }
