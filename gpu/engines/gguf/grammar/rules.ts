import { characters, type Ranges } from './characters.ts'

/** A part of a rule: text, one character of a set, what a rule matches, or a repetition, whose `max` may be Infinity. */
export type GrammarPart =
  | string
  | { kind: 'set'; set: Ranges }
  | RulePart
  | { kind: 'repeat'; of: GrammarPart; min: number; max: number }
export interface RulePart {
  kind: 'rule'
  rule: string
}

export type Sequence = readonly GrammarPart[]
/** Rules by name; each is a list of alternatives. */
export type RuleMap = ReadonlyMap<string, readonly Sequence[]>

export const setOf = (ranges: Ranges): GrammarPart => ({ kind: 'set', set: ranges })
/** A set by pairs of first and last character: `set('09', 'af')`. */
export const set = (...pairs: string[]): GrammarPart => setOf(characters(...pairs))
/** Repeats a part, by default any number of times. */
export function repeat(of: GrammarPart, min = 0, max = Number.POSITIVE_INFINITY): GrammarPart {
  if (max === 0) return ''
  return min === 1 && max === 1 ? of : { kind: 'repeat', of, min, max }
}
export const optional = (of: GrammarPart): GrammarPart => repeat(of, 0, 1)

/** llama.cpp refuses more repetitions, and silently ignores a larger maximum. */
export const maxRepetitions = 2000

export function openRules(budget: Pick<Budget, 'parts' | 'checkpoint'>) {
  const rules = new Map<string, readonly Sequence[]>()
  const known = new Map<string, RulePart>()
  const counts = new Map<string, number>()
  const pending: { name: string; make: () => readonly Sequence[] }[] = []
  const distinct = new Set<string>()

  /** Names a rule after the hint, with a number if that name is taken. */
  const reserve = (hint: string): string => {
    const count = (counts.get(hint) ?? 0) + 1
    counts.set(hint, count)
    const name = count === 1 ? hint : `${hint}-${count}`
    if (rules.has(name)) return reserve(hint)
    rules.set(name, [])
    return name
  }

  /** Alternatives with the same beginning share it, so that llama.cpp need not follow many readings at once. */
  const factored = (name: string, alternatives: readonly Sequence[]): Sequence[] => {
    const groups = Map.groupBy(alternatives.map(split), ([head]) => (head === undefined ? '' : keyOf(head)))
    return Array.from(groups.values(), group => {
      const shared: GrammarPart[] = []
      let open: Sequence[] = group
      for (let next = commonHead(open); next !== undefined; next = commonHead(open)) {
        shared.push(next)
        open = open.map(rest => split(rest).slice(1))
      }
      return open.every(rest => rest.length === 0) ? joined(shared) : joined([...shared, define(name, open)])
    })
  }

  /** Sets the alternatives of a reserved rule. */
  const fill = (name: string, alternatives: readonly Sequence[]): void => {
    budget.parts(alternatives.reduce((sum, sequence) => sum + 1 + sizeOf(sequence), 1))
    const simple = alternatives.map(joined)
    rules.set(name, simple.length > 1 ? factored(name.replace(/-\d+$/, ''), simple) : simple)
  }
  /** Adds a rule. */
  const define = (hint: string, alternatives: readonly Sequence[]): RulePart => {
    const rule = reserve(hint)
    fill(rule, alternatives)
    return { kind: 'rule', rule }
  }

  return {
    rules: rules as RuleMap,
    reserve,
    fill,
    define,
    /** Returns the rule for this key. It is built later, once, so that rules can refer to each other and themselves. */
    once: (key: string, hint: string, make: () => readonly Sequence[]): RulePart => {
      const found = known.get(key)
      if (found) return found
      const name = reserve(hint)
      const part: RulePart = { kind: 'rule', rule: name }
      known.set(key, part)
      pending.push({ name, make })
      return part
    },
    /** Makes the pending rules and those that they need, one per step. */
    *settle(): Generator<void, void> {
      for (let next = pending.pop(); next; next = pending.pop()) {
        fill(next.name, next.make())
        yield
      }
    },
    /** Rules whose alternatives begin differently by construction. */
    distinct,
    /** Returns a function that forgets the rules made from now on. Called while no rule is pending. */
    checkpoint: (): (() => void) => {
      const sizes = [rules, known, distinct].map(({ size }) => size)
      const restoreBudget = budget.checkpoint()
      return () => {
        pending.length = 0
        for (const [at, made] of [rules, known, distinct].entries())
          for (const key of [...made.keys()].slice(sizes[at])) made.delete(key)
        restoreBudget()
      }
    },
  }
}

export type GrammarRules = ReturnType<typeof openRules>

/** Returns the sequence with its first character as a separate part, if it begins with text. */
function split(sequence: Sequence): Sequence {
  const [first, ...rest] = sequence
  if (typeof first !== 'string') return sequence
  const [character] = first
  if (character === undefined) return split(rest)
  return first === character ? sequence : [character, first.slice(character.length), ...rest]
}

/** Returns the first part, if all sequences have the same. */
function commonHead(sequences: readonly Sequence[]): GrammarPart | undefined {
  const heads = sequences.map(sequence => split(sequence)[0])
  const [first] = heads
  return first && heads.every(head => head && keyOf(head) === keyOf(first)) ? first : undefined
}

/** Joins adjacent texts, and removes empty ones. */
function joined(sequence: Sequence): Sequence {
  const parts: GrammarPart[] = []
  for (const part of sequence) {
    const last = parts.at(-1)
    if (typeof part === 'string' && typeof last === 'string') parts[parts.length - 1] = last + part
    else if (part !== '') parts.push(part)
  }
  return parts
}

function keyOf(part: GrammarPart): string {
  if (typeof part === 'string') return `"${part}`
  if (part.kind === 'set') return `[${part.set.join(';')}`
  if (part.kind === 'rule') return `=${part.rule}`
  return `*${part.min},${part.max}${keyOf(part.of)}`
}

const sizeOf = (sequence: Sequence): number => sequence.reduce((sum, part) => sum + partSize(part), 0)

function partSize(part: GrammarPart): number {
  if (typeof part === 'string') return part.length
  if (part.kind === 'set') return part.set.length
  if (part.kind === 'rule') return 1
  return partSize(part.of) * (Number.isFinite(part.max) ? part.max : part.min + 1)
}

/** Limits of the cost of one grammar, so that no request can block the engine with its schema. */
const most = {
  /** Characters and references in the rules. llama.cpp parses about a million a second, again for every answer. */
  parts: 100_000,
  /** Steps of the conversion; a few hundred thousand per second at worst. */
  steps: 1_000_000,
}

/** Counts the cost of a grammar and calls `refuse` with the reason when it exceeds a limit. */
export function openBudget(refuse: (reason: string) => never) {
  let parts = 0
  let steps = 0
  return {
    parts(amount: number): void {
      parts += amount
      if (parts > most.parts) refuse(`its grammar would have more than ${most.parts} parts`)
    },
    steps(amount: number): void {
      steps += amount
      if (steps > most.steps) refuse('its alternatives multiply')
    },
    /** Returns a function that gives back the parts counted from now on. Steps are spent. */
    checkpoint(): () => void {
      const before = parts
      return () => {
        parts = before
      }
    },
  }
}

export type Budget = ReturnType<typeof openBudget>
