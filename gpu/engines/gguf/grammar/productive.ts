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
 * like itself: a model that took one could not find out again. A rule that has none left is not among them.
 */
export function productiveRules(rules: RuleMap, from: Iterable<string>): RuleMap {
  const finite = finiteRules(rules)
  const reached = new Set([...from].filter(name => finite.has(name)))
  const made = new Map<string, Sequence[]>()
  for (const name of reached) {
    const alternatives = rules
      .get(name)!
      .filter(sequence => referred(sequence, true).every(other => finite.has(other)))
      .map(sequence => sequence.filter((part: Part) => referred([part]).every(other => finite.has(other))))
    made.set(name, alternatives)
    for (const sequence of alternatives) for (const other of referred(sequence)) reached.add(other)
  }
  return made
}

/** The rules that match some text: those of which an alternative needs only such rules. */
function finiteRules(rules: RuleMap): ReadonlySet<string> {
  const finite = new Set<string>()
  const waiting = new Map<string, { name: string; missing: number }[]>()
  for (const [name, alternatives] of rules)
    for (const sequence of alternatives) {
      const needs = new Set(referred(sequence, true))
      const entry = { name, missing: needs.size }
      if (needs.size === 0) finite.add(name)
      for (const other of needs) {
        const entries = waiting.get(other)
        if (entries) entries.push(entry)
        else waiting.set(other, [entry])
      }
    }
  // A set gives also what is added to it meanwhile.
  for (const name of finite)
    for (const entry of waiting.get(name) ?? []) if (--entry.missing === 0) finite.add(entry.name)
  return finite
}
