import type { Automaton } from './automaton.ts'
import { characters, intersection } from './characters.ts'
import { plainCharacters } from './json.ts'
import { type GrammarPart, type GrammarRules, type Ranges, rule, type Sequence, set, textPart } from './rules.ts'

interface Step {
  part: GrammarPart
  to: number
}

/**
 * Writes the texts of an automaton in JSON: each character in one way only, escaped if necessary, and `end` after the
 * last one. Creates a rule for each state, except those that only lead from one state to one other.
 */
export function spell(automaton: Automaton, rules: GrammarRules, hint: string, end: Sequence): Sequence {
  const steps = automaton.map(({ moves }) =>
    moves.flatMap(({ over, to }) => spellings(over, rules).map(part => ({ part, to }))),
  )
  const arrivals = automaton.map(() => 0)
  for (const { to } of steps.flat()) arrivals[to]!++
  arrivals[0]!++

  const names = new Map<number, string>()
  const pending: number[] = []
  const nameOf = (state: number): string => {
    const known = names.get(state)
    if (known !== undefined) return known
    const name = rules.reserve(hint)
    rules.distinct.add(name)
    names.set(state, name)
    pending.push(state)
    return name
  }
  /** Returns the step and those after it, as long as there is only one way to continue. */
  const along = (first: Step): Sequence => {
    const parts = [first.part]
    for (let at = first.to; ; ) {
      const [only, ...others] = steps[at]!
      const { ends } = automaton[at]!
      if (arrivals[at] !== 1 || others.length > 0 || (only && ends)) return [...parts, rule(nameOf(at))]
      if (!only) return [...parts, ...end]
      parts.push(only.part)
      at = only.to
    }
  }

  const start = rule(nameOf(0))
  for (let at = pending.pop(); at !== undefined; at = pending.pop())
    rules.fill(nameOf(at), [...steps[at]!.map(along), ...(automaton[at]!.ends ? [end] : [])])
  return [start]
}

/** Returns a set of characters as JSON writes them in strings. */
function spellings(over: Ranges, rules: GrammarRules): GrammarPart[] {
  const plain = intersection(over, plainCharacters)
  const others = intersection(over, mustBeEscaped)
  const escaped = () =>
    rules.once(`escaped ${others.join()}`, 'escaped', () =>
      others.flatMap(([low, high]) =>
        Array.from({ length: high - low + 1 }, (_, at) => [
          textPart(JSON.stringify(String.fromCodePoint(low + at)).slice(1, -1)),
        ]),
      ),
    )
  return [...(plain.length ? [set(plain)] : []), ...(others.length ? [rule(escaped())] : [])]
}

const mustBeEscaped = characters('\u0000\u001f', '"', '\\')
