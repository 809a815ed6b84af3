import { type Automaton, automatonOf, bothOf, withLength } from './automaton.ts'
import { type SchemaShape, unsupported } from './keywords.ts'
import { multiplesAmong } from './multiples.ts'
import { NotSimple, parsePattern } from './pattern.ts'
import type { Budget, Sequence } from './rules.ts'
import type { SchemaNode } from './schema.ts'

/** Months 01 to 12 with the days that they have in every year, so without the 29th of February. */
const day =
  '(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))'
const date = `[0-9]{4}-${day}`
/** RFC 3339, without leap seconds (second 60); fractions are at most nanoseconds. */
const time = '(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]{1,9})?(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])'
const byte = '(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])'
const label = '[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?'
const word = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]{1,32}"
const hex = '[0-9a-fA-F]{1,4}'
/** The groups of an address of which two colons leave some out. */
const compressed = Array.from({ length: 6 }, (_, at) => `(?:${hex}:){1,${6 - at}}(?::${hex}){1,${at + 1}}`)
const count = '[0-9]{1,9}'
const span = `(?:${count}Y(?:${count}M(?:${count}D)?)?|${count}M(?:${count}D)?|${count}D)`
const timeSpan = `T(?:${count}H(?:${count}M(?:${count}S)?)?|${count}M(?:${count}S)?|${count}S)`

/**
 * Formats of strings as patterns. Each matches only values of the format, but not all of them: values that a pattern
 * cannot express, such as leap days, are left out. Source: section 7.3 of JSON Schema Validation 2020-12.
 */
export const formats: Readonly<Record<string, string>> = {
  date: `^${date}$`,
  time: `^${time}$`,
  'date-time': `^${date}T${time}$`,
  uuid: '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$',
  ipv4: `^${byte}(?:\\.${byte}){3}$`,
  ipv6: `^(?:(?:${hex}:){7}${hex}|(?:${hex}:){1,7}:|${compressed.join('|')}|:(?::${hex}){1,7}|::)$`,
  hostname: `^${label}(?:\\.${label}){0,3}$`,
  duration: `^P(?:${span}(?:${timeSpan})?|${timeSpan}|${count}W)$`,
  email: `^${word}(?:\\.${word})?@${label}(?:\\.${label}){1,3}$`,
}

/** Cost of computing one state, in steps of the budget, which allows a dozen patterns of the largest kind. */
const stateSteps = 40

/**
 * Creates the automata of the patterns and formats of a grammar, each once. All functions throw a Failure that names
 * the keyword if a pattern is invalid or not simple enough, or a format unknown.
 */
export function openAutomata(budget: Budget) {
  const patterns = new Map<string, Automaton>()

  const charged = (automaton: Automaton): Automaton => {
    budget.steps(automaton.length * stateSteps)
    return automaton
  }
  const pattern = ({ source, schemaNode }: SchemaShape['patterns'][number]): Automaton => {
    const known = patterns.get(source)
    if (known) return known
    const made = charged(simple(schemaNode, 'pattern', () => automatonOf(parsePattern(source))))
    patterns.set(source, made)
    return made
  }
  const format = ({ name, schemaNode }: SchemaShape['formats'][number]): Automaton => {
    if (!Object.hasOwn(formats, name)) refuseFormat(name, schemaNode)
    return pattern({ source: formats[name]!, schemaNode })
  }

  return {
    pattern,
    format,
    /** Returns those of the decimal forms of numbers that are multiples as the shape demands; it demands some. */
    multiplesOf: (shape: SchemaShape, forms: readonly Sequence[]): Automaton =>
      charged(simple(shape.with('multipleOf'), 'multipleOf', () => multiplesAmong(forms, shape.steps))),
    /** Returns the strings that all patterns of a shape accept; undefined if it has none. */
    patternsOf: (shape: SchemaShape): Automaton | undefined =>
      together(shape.patterns.map(pattern), shape.with('pattern'), 'pattern'),
    /** Returns the strings of allowed length that all patterns and formats accept; undefined if there are neither. */
    stringsOf(shape: SchemaShape): Automaton | undefined {
      const { minLength, maxLength } = shape
      const keyword = shape.patterns.length ? 'pattern' : 'format'
      const schemaNode = shape.with(keyword)
      const all = together([...shape.patterns.map(pattern), ...shape.formats.map(format)], schemaNode, keyword)
      if (!all || (minLength === 0 && maxLength === Number.POSITIVE_INFINITY)) return all
      return charged(simple(schemaNode, keyword, () => withLength(all, minLength, maxLength)))
    },
  }

  function together(all: readonly Automaton[], schemaNode: SchemaNode, keyword: string): Automaton | undefined {
    const [first, ...others] = all
    return (
      first && others.reduce((left, right) => charged(simple(schemaNode, keyword, () => bothOf(left, right))), first)
    )
  }
}

export type Automata = ReturnType<typeof openAutomata>

export const refuseFormat = (name: string, schemaNode: SchemaNode): never =>
  unsupported(schemaNode, 'format', `the format '${name}' of strings is not among ${Object.keys(formats).join(', ')}`)

function simple<T>(schemaNode: SchemaNode, keyword: string, make: () => T): T {
  try {
    return make()
  } catch (error) {
    if (error instanceof NotSimple)
      unsupported(
        schemaNode,
        keyword,
        `${keyword === 'multipleOf' ? 'it' : 'the pattern'} is not simple enough, ${error.message}`,
      )
    const { document, path } = schemaNode
    if (error instanceof SyntaxError)
      document.invalid(`${path}.${keyword}`, `is no regular expression: ${error.message}`)
    throw error
  }
}
