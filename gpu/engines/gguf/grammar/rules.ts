/** Sorted, disjoint ranges of code points, both ends included. */
export type Ranges = readonly (readonly [low: number, high: number])[]

/** A part of a rule. `text` stands for itself, `set` for one of its characters, `rule` for what that rule matches. */
export type Part =
  | { kind: 'text'; text: string }
  | { kind: 'set'; set: Ranges }
  | { kind: 'rule'; rule: string }
  /** `of` again and again, at least `min` and at most `max` times; `max` may be Infinity. */
  | { kind: 'repeat'; of: Part; min: number; max: number }

export type Sequence = readonly Part[]
/** Rules by name; each is a list of alternatives. */
export type RuleMap = ReadonlyMap<string, readonly Sequence[]>

export const text = (characters: string): Part => ({ kind: 'text', text: characters })
export const set = (ranges: Ranges): Part => ({ kind: 'set', set: ranges })
export const rule = (name: string): Part => ({ kind: 'rule', rule: name })
export const repeat = (of: Part, min: number, max: number): Part => ({ kind: 'repeat', of, min, max })

/** llama.cpp refuses to repeat more often, and silently reads a larger maximum as none. */
export const mostRepetitions = 2000

/**
 * The rules of a grammar under construction. Rules may be asked for before they are complete, which is how they refer
 * to themselves. `refuse` is called with the reason when the grammar outgrows `limit` characters and references.
 */
export function openRules(limit: number, refuse: (reason: string) => never) {
  const rules = new Map<string, readonly Sequence[]>()
  const names = new Map<string, string>()
  let size = 0

  const spend = (amount: number) => {
    size += amount
    if (size > limit) refuse(`its grammar would have more than ${limit} parts`)
  }
  const nameLike = (hint: string): string => {
    if (!rules.has(hint)) return hint
    for (let count = 2; ; count++) if (!rules.has(`${hint}-${count}`)) return `${hint}-${count}`
  }

  /** Alternatives that begin alike share that beginning, so that a reader of the text need not follow many at once. */
  const factored = (name: string, alternatives: readonly Sequence[]): Sequence[] => {
    const groups = new Map<string, { head: Part; rests: Sequence[] }>()
    for (const sequence of alternatives) {
      const [head, ...rest] = split(sequence)
      const key = head === undefined ? '' : keyOf(head)
      const group = groups.get(key)
      if (group) group.rests.push(rest)
      else groups.set(key, { head: head ?? text(''), rests: [rest] })
    }
    return [...groups.values()].map(({ head, rests }) => {
      const shared: Part[] = [head]
      let open = rests
      while (open.every(rest => rest.length > 0) && new Set(open.map(rest => keyOf(split(rest)[0]!))).size === 1) {
        shared.push(split(open[0]!)[0]!)
        open = open.map(rest => split(rest).slice(1))
      }
      if (open.every(rest => rest.length === 0)) return joined(shared)
      return joined([...shared, rule(define(name, open))])
    })
  }

  const complete = (name: string, alternatives: readonly Sequence[]): void => {
    const made = alternatives.length > 1 ? factored(name, alternatives) : alternatives.map(joined)
    spend(made.reduce((sum, sequence) => sum + 1 + sequence.reduce((parts, part) => parts + sizeOf(part), 0), 1))
    rules.set(name, made)
  }
  /** Adds a rule and gives its name, which is the hint or like it. */
  const define = (hint: string, alternatives: readonly Sequence[]): string => {
    const name = nameLike(hint)
    rules.set(name, [])
    complete(name, alternatives)
    return name
  }

  return {
    rules: rules as RuleMap,
    spend,
    define,
    /** The rule for this key, which is made when it is asked for the first time. */
    once(key: string, hint: string, make: () => readonly Sequence[]): string {
      const known = names.get(key)
      if (known !== undefined) return known
      const name = nameLike(hint)
      names.set(key, name)
      rules.set(name, [])
      complete(name, make())
      return name
    },
  }
}

export type Rules = ReturnType<typeof openRules>

/** The sequence with its first character, if it begins with text, as a part of its own. */
function split(sequence: Sequence): Sequence {
  const [first, ...rest] = sequence
  if (first?.kind !== 'text') return sequence
  const character = String.fromCodePoint(first.text.codePointAt(0) ?? 0)
  if (first.text === '') return split(rest)
  return first.text === character ? sequence : [text(character), text(first.text.slice(character.length)), ...rest]
}

/** Neighbouring texts become one, empty ones vanish. */
function joined(sequence: Sequence): Sequence {
  const parts: Part[] = []
  for (const part of sequence) {
    const last = parts.at(-1)
    if (part.kind === 'text' && part.text === '') continue
    if (part.kind === 'text' && last?.kind === 'text') parts[parts.length - 1] = text(last.text + part.text)
    else parts.push(part)
  }
  return parts
}

function keyOf(part: Part): string {
  if (part.kind === 'text') return `"${part.text}`
  if (part.kind === 'set') return `[${part.set.join(';')}`
  if (part.kind === 'rule') return `=${part.rule}`
  return `*${part.min},${part.max}${keyOf(part.of)}`
}

function sizeOf(part: Part): number {
  if (part.kind === 'text') return part.text.length
  if (part.kind === 'set') return part.set.length
  if (part.kind === 'rule') return 1
  return sizeOf(part.of) * (Number.isFinite(part.max) ? part.max : part.min + 1)
}
