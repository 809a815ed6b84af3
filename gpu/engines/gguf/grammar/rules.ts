/** Sorted, disjoint ranges of code points, both ends included. */
export type Ranges = readonly (readonly [low: number, high: number])[]

/** A part of a rule. `text` matches itself, `set` one of its characters, `rule` what that rule matches. */
export type GrammarPart =
  | { kind: 'text'; text: string }
  | { kind: 'set'; set: Ranges }
  | { kind: 'rule'; rule: string }
  /** `of`, repeated at least `min` and at most `max` times; `max` may be Infinity. */
  | { kind: 'repeat'; of: GrammarPart; min: number; max: number }

export type Sequence = readonly GrammarPart[]
/** Rules by name; each is a list of alternatives. */
export type RuleMap = ReadonlyMap<string, readonly Sequence[]>

export const textPart = (characters: string): GrammarPart => ({ kind: 'text', text: characters })
export const set = (ranges: Ranges): GrammarPart => ({ kind: 'set', set: ranges })
export const rule = (name: string): GrammarPart => ({ kind: 'rule', rule: name })
export const repeat = (of: GrammarPart, min: number, max: number): GrammarPart => ({ kind: 'repeat', of, min, max })

/** llama.cpp refuses more repetitions, and silently ignores a larger maximum. */
export const maxRepetitions = 2000

export function openRules(budget: Pick<Budget, 'parts'>) {
  const rules = new Map<string, readonly Sequence[]>()
  const names = new Map<string, string>()
  const counts = new Map<string, number>()
  const pending: { name: string; make: () => readonly Sequence[] }[] = []
  const distinct = new Set<string>()

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
    const groups = new Map<string, { head: GrammarPart | undefined; rests: Sequence[] }>()
    for (const sequence of alternatives) {
      const [head, ...rest] = split(sequence)
      const key = head ? keyOf(head) : ''
      const group = groups.get(key)
      if (group) group.rests.push(rest)
      else groups.set(key, { head, rests: [rest] })
    }
    return [...groups.values()].map(({ head, rests }) => {
      const shared = head ? [head] : []
      let open = rests
      for (let next = commonHead(open); next; next = commonHead(open)) {
        shared.push(next)
        open = open.map(rest => split(rest).slice(1))
      }
      return open.every(rest => rest.length === 0) ? joined(shared) : joined([...shared, rule(define(name, open))])
    })
  }

  /** Sets the alternatives of a reserved rule. */
  const fill = (name: string, alternatives: readonly Sequence[]): void => {
    budget.parts(alternatives.reduce((sum, sequence) => sum + 1 + sizeOf(sequence), 1))
    const simple = alternatives.map(joined)
    rules.set(name, simple.length > 1 ? factored(name.replace(/-\d+$/, ''), simple) : simple)
  }
  /** Adds a rule and returns its name, which is the hint, with a number if it is taken. */
  const define = (hint: string, alternatives: readonly Sequence[]): string => {
    const name = reserve(hint)
    fill(name, alternatives)
    return name
  }

  return {
    rules: rules as RuleMap,
    reserve,
    fill,
    define,
    /** Returns the rule for this key. It is built later, once, so that rules can refer to each other and themselves. */
    once(key: string, hint: string, make: () => readonly Sequence[]): string {
      const known = names.get(key)
      if (known !== undefined) return known
      const name = reserve(hint)
      names.set(key, name)
      pending.push({ name, make })
      return name
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
  }
}

export type GrammarRules = ReturnType<typeof openRules>

/** Returns the sequence with its first character as a separate part, if it begins with text. */
function split(sequence: Sequence): Sequence {
  const [first, ...rest] = sequence
  if (first?.kind !== 'text') return sequence
  const character = String.fromCodePoint(first.text.codePointAt(0) ?? 0)
  if (first.text === '') return split(rest)
  return first.text === character
    ? sequence
    : [textPart(character), textPart(first.text.slice(character.length)), ...rest]
}

/** Returns the first part, if all sequences have the same. */
function commonHead(sequences: readonly Sequence[]): GrammarPart | undefined {
  const heads = sequences.map(sequence => split(sequence)[0])
  const [first] = heads
  return first && heads.every(head => head && keyOf(head) === keyOf(first)) ? first : undefined
}

/** Joins adjacent texts, and removes empty parts and repetitions of exactly one. */
function joined(sequence: Sequence): Sequence {
  const parts: GrammarPart[] = []
  for (const given of sequence) {
    const part = given.kind === 'repeat' && given.min === 1 && given.max === 1 ? given.of : given
    const last = parts.at(-1)
    if ((part.kind === 'text' && part.text === '') || (part.kind === 'repeat' && part.max === 0)) continue
    if (part.kind === 'text' && last?.kind === 'text') parts[parts.length - 1] = textPart(last.text + part.text)
    else parts.push(part)
  }
  return parts
}

function keyOf(part: GrammarPart): string {
  if (part.kind === 'text') return `"${part.text}`
  if (part.kind === 'set') return `[${part.set.join(';')}`
  if (part.kind === 'rule') return `=${part.rule}`
  return `*${part.min},${part.max}${keyOf(part.of)}`
}

const sizeOf = (sequence: Sequence): number => sequence.reduce((sum, part) => sum + partSize(part), 0)

function partSize(part: GrammarPart): number {
  if (part.kind === 'text') return part.text.length
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
  }
}

export type Budget = ReturnType<typeof openBudget>
