import { type Automaton, automatonOf, bothOf, withLength } from './automaton.ts'
import type { Budget } from './budget.ts'
import { formats } from './formats.ts'
import { NotSimple, parsePattern } from './pattern.ts'
import type { Place } from './schema.ts'
import type { Shape } from './shape.ts'

/** What a state costs to find, in steps of the budget: a dozen patterns of the largest kind are the most. */
const stateSteps = 40

/**
 * The automata of the patterns and formats of a grammar, each made once. All functions throw the Failure that names
 * the keyword for what is no pattern, not simple enough or not known.
 */
export function openAutomata(budget: Budget) {
  const patterns = new Map<string, Automaton>()

  const charged = (automaton: Automaton): Automaton => {
    budget.steps(automaton.length * stateSteps)
    return automaton
  }
  const pattern = ({ source, place }: Shape['patterns'][number]): Automaton => {
    const known = patterns.get(source)
    if (known) return known
    const made = charged(simple(place, 'pattern', () => automatonOf(parsePattern(source))))
    patterns.set(source, made)
    return made
  }
  const format = ({ name, place }: Shape['formats'][number]): Automaton => {
    if (!Object.hasOwn(formats, name)) refuseFormat(name, place)
    return pattern({ source: formats[name]!, place })
  }

  return {
    pattern,
    format,
    /** What all patterns of a shape accept; undefined when it has none. */
    patternsOf: (shape: Shape): Automaton | undefined =>
      together(shape.patterns.map(pattern), shape.with('pattern'), 'pattern'),
    /** What all patterns and formats of a shape accept, of its lengths; undefined when it has neither. */
    stringsOf(shape: Shape): Automaton | undefined {
      const { minLength, maxLength } = shape
      const keyword = shape.patterns.length ? 'pattern' : 'format'
      const place = shape.with(keyword)
      const all = together([...shape.patterns.map(pattern), ...shape.formats.map(format)], place, keyword)
      if (!all || (minLength === 0 && maxLength === Number.POSITIVE_INFINITY)) return all
      return charged(simple(place, keyword, () => withLength(all, minLength, maxLength)))
    },
  }

  function together(all: readonly Automaton[], place: Place, keyword: string): Automaton | undefined {
    const [first, ...others] = all
    return first && others.reduce((left, right) => charged(simple(place, keyword, () => bothOf(left, right))), first)
  }
}

export type Automata = ReturnType<typeof openAutomata>

export function refuseFormat(name: string, { document, path }: Place): never {
  const known = Object.keys(formats).join(', ')
  return document.unsupported(`${path}.format`, `the format '${name}' of strings is not among ${known}`)
}

function simple<T>({ document, path }: Place, keyword: string, make: () => T): T {
  try {
    return make()
  } catch (error) {
    const where = `${path}.${keyword}`
    if (error instanceof NotSimple) document.unsupported(where, `the pattern is not simple enough, ${error.message}`)
    if (error instanceof SyntaxError) document.invalid(where, `is no regular expression: ${error.message}`)
    throw error
  }
}
