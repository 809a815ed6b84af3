import type { Part, RuleMap, Sequence } from './rules.ts'

/** The rules that a sequence refers to; `needed` leaves out what may be repeated no times. */
export function referred(sequence: Sequence, needed = false): string[] {
  const names: string[] = []
  for (const part of sequence) {
    if (part.kind === 'rule') names.push(part.rule)
    else if (part.kind === 'repeat' && !(needed && part.min === 0)) names.push(...referred([part.of], needed))
  }
  return names
}

/**
 * The rules that `from` lead to, without alternatives that never end, such as an object that must hold another one
 * like itself: a model that took one could not find out again. A rule that has none left is not among them. A step
 * looks at one rule.
 */
export function* productiveRules(rules: RuleMap, from: Iterable<string>): Generator<void, RuleMap> {
  const asked = [...from]
  const finite = yield* finiteRules(rules, asked)
  const reached = new Set(asked.filter(name => finite.has(name)))
  const made = new Map<string, Sequence[]>()
  for (const name of reached) {
    const alternatives = rules
      .get(name)!
      .filter(sequence => referred(sequence, true).every(other => finite.has(other)))
      .map(sequence => sequence.filter((part: Part) => referred([part]).every(other => finite.has(other))))
    made.set(name, alternatives)
    for (const sequence of alternatives) for (const other of referred(sequence)) reached.add(other)
    yield
  }
  return made
}

/**
 * Of the rules that `from` lead to, those that match some text: of which an alternative needs only such rules. No others
 * are looked at, since each of many tools asks this with the rules of all those before it beside its own.
 */
function* finiteRules(rules: RuleMap, from: readonly string[]): Generator<void, ReadonlySet<string>> {
  const finite = new Set<string>()
  const waiting = new Map<string, { name: string; missing: number }[]>()
  // A set gives also what is added to it meanwhile.
  const reached = new Set(from)
  for (const name of reached) {
    for (const sequence of rules.get(name)!) {
      for (const other of referred(sequence)) reached.add(other)
      const needs = new Set(referred(sequence, true))
      const entry = { name, missing: needs.size }
      if (needs.size === 0) finite.add(name)
      for (const other of needs) {
        const entries = waiting.get(other)
        if (entries) entries.push(entry)
        else waiting.set(other, [entry])
      }
    }
    yield
  }
  for (const name of finite)
    for (const entry of waiting.get(name) ?? []) if (--entry.missing === 0) finite.add(entry.name)
  return finite
}
